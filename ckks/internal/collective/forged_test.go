package collective

import (
	"strings"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/multiparty"

	"privet/ckks/internal/wire"
)

const forgery = 1 << 24

// forged is a sum of first shares whose first part is a constant instead: a member's second share is then its secret times that
// constant, and a little noise.
func (c cohort) forged() *rlwe.GadgetCiphertext {
	_, sum, _ := multiparty.NewRelinearizationKeyGenProtocol(c.params).AllocateShare()
	for i, s := range c.params.RingQ().SubRings {
		for k := range s.N {
			sum.Value[0][0][0].Q.Coeffs[i][k] = forgery % s.Modulus
		}
	}
	return &sum.GadgetCiphertext
}

// recovers reads a member's share of the secret off its second share, and tells how many coefficients are right.
func (c cohort) recovers(t *testing.T, m *Member, second []byte) int {
	t.Helper()
	_, _, share := multiparty.NewRelinearizationKeyGenProtocol(c.params).AllocateShare()
	if err := wire.ReadGadget(second, c.params, &share.GadgetCiphertext); err != nil {
		t.Fatal(err)
	}
	ring := c.params.RingQ().AtLevel(0)
	read := share.Value[0][0][0].Q
	ring.INTT(read, read)
	truth := m.secret.Value.Q.CopyNew()
	ring.IMForm(*truth, *truth)
	ring.INTT(*truth, *truth)
	modulus, right := int64(ring.SubRings[0].Modulus), 0
	signed := func(residue uint64) int64 {
		if value := int64(residue); value <= modulus/2 {
			return value
		}
		return int64(residue) - modulus
	}
	for k := range c.params.N() {
		guess := int64(0)
		if value := signed(read.Coeffs[0][k]); value > forgery/2 {
			guess = 1
		} else if value < -forgery/2 {
			guess = -1
		}
		if guess == signed(truth.Coeffs[0][k]) {
			right++
		}
	}
	return right
}

// TestAForgedSumTellsNoSecret has a coordinator send something else than the sum of first shares. A member that used it would
// give its secret away, which the control shows.
func TestAForgedSumTellsNoSecret(t *testing.T) {
	c := newCohort(t, 3, 2, 13, 4)
	key, err := c.coordinator.PublicKey(c.gather(t, (*Member).PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	c.gather(t, (*Member).RelinearisationFirst)
	public, forged := wire.AppendQP(nil, c.params, key.Value[0]), c.forged()
	if _, err := c.members[1].RelinearisationSecond(); err == nil {
		t.Error("a second share was given before members compared sums")
	}
	for member, err := range c.compare(t, public, wire.AppendGadget(nil, c.params, forged)) {
		if err == nil || !strings.Contains(err.Error(), "not those of the members' shares") {
			t.Errorf("member %d took a forged sum: %v", member, err)
		}
		if _, err := c.members[member].RelinearisationSecond(); err == nil {
			t.Errorf("member %d gives a share for a forged sum", member)
		}
		if _, err := c.members[member].CohortKey(); err == nil {
			t.Errorf("member %d goes on with a public key that came with a forged sum", member)
		}
	}
	m := c.members[1]
	second, err := m.relinearisationSecond(forged)
	if err != nil {
		t.Fatal(err)
	}
	if right := c.recovers(t, m, second); right != c.params.N() {
		t.Errorf("without the comparison a forged sum gives %d of %d coefficients of a secret share, so the test shows nothing", right, c.params.N())
	}
}

// TestOneCoefficientOffIsFound changes as little as possible in either sum.
func TestOneCoefficientOffIsFound(t *testing.T) {
	for _, where := range []string{"nowhere", "public key", "relinearisation key", "special prime"} {
		c := newCohort(t, 2, 1, 12, 4)
		key, err := c.coordinator.PublicKey(c.gather(t, (*Member).PublicKey))
		if err != nil {
			t.Fatal(err)
		}
		first, err := c.coordinator.RelinearisationFirst(c.gather(t, (*Member).RelinearisationFirst))
		if err != nil {
			t.Fatal(err)
		}
		_, sum, _ := multiparty.NewRelinearizationKeyGenProtocol(c.params).AllocateShare()
		if err := wire.ReadGadget(first, c.params, &sum.GadgetCiphertext); err != nil {
			t.Fatal(err)
		}
		last := len(sum.Value) - 1
		switch where {
		case "public key":
			key.Value[0].Q.Coeffs[0][5] ^= 1
		case "relinearisation key":
			sum.Value[last][0][1].Q.Coeffs[1][7] ^= 1
		case "special prime":
			sum.Value[0][0][0].P.Coeffs[0][0] ^= 1
		}
		public := wire.AppendQP(nil, c.params, key.Value[0])
		for member, err := range c.compare(t, public, wire.AppendGadget(nil, c.params, &sum.GadgetCiphertext)) {
			if (err == nil) != (where == "nowhere") {
				t.Errorf("%s: member %d finds %v", where, member, err)
			}
		}
	}
}
