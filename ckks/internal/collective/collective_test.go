package collective

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

// cohort is a coordinator and members, each with its own copy of the common randomness.
type cohort struct {
	set         params.Set
	params      ckks.Parameters
	coordinator *Coordinator
	members     []*Member
}

func newCohort(t *testing.T, count, depth, logN, decryptions int) cohort {
	t.Helper()
	set, ok := params.Choose(depth, logN)
	if !ok {
		t.Fatalf("%d levels do not fit degree 2^%d", depth, logN)
	}
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	contributions := make([][]byte, count)
	for i := range contributions {
		contributions[i] = make([]byte, ContributionBytes)
		if _, err := rand.Read(contributions[i]); err != nil {
			t.Fatal(err)
		}
	}
	common := func() *Common {
		made, err := NewCommon(contributions)
		if err != nil {
			t.Fatal(err)
		}
		return made
	}
	c := cohort{set: set, params: built, coordinator: NewCoordinator(built, common(), count)}
	for range count {
		member, err := NewMember(built, common(), count, decryptions)
		if err != nil {
			t.Fatal(err)
		}
		c.members = append(c.members, member)
	}
	return c
}

func (c cohort) gather(t *testing.T, share func(*Member) ([]byte, error)) [][]byte {
	t.Helper()
	var shares [][]byte
	for _, member := range c.members {
		data, err := share(member)
		if err != nil {
			t.Fatal(err)
		}
		shares = append(shares, data)
	}
	return shares
}

// publicKey makes the public key, and the members' first shares of the relinearisation key, and has members compare the sums.
func (c cohort) publicKey(t *testing.T) (*rlwe.PublicKey, []byte) {
	t.Helper()
	key, err := c.coordinator.PublicKey(c.gather(t, (*Member).PublicKey))
	if err != nil {
		t.Fatal(err)
	}
	first, err := c.coordinator.RelinearisationFirst(c.gather(t, (*Member).RelinearisationFirst))
	if err != nil {
		t.Fatal(err)
	}
	for member, err := range c.compare(t, wire.AppendQP(nil, c.params, key.Value[0]), first) {
		if err != nil {
			t.Fatalf("member %d: %v", member, err)
		}
	}
	return key, first
}

// compare has members check sums, and gives what each finds.
func (c cohort) compare(t *testing.T, public, first []byte) []error {
	t.Helper()
	challenge := [32]byte{}
	if _, err := rand.Read(challenge[:]); err != nil {
		t.Fatal(err)
	}
	for _, member := range c.members {
		if err := member.TakeSums(public, first); err != nil {
			t.Fatal(err)
		}
	}
	projections := c.gather(t, func(m *Member) ([]byte, error) { return m.ProjectShares(challenge) })
	found := make([]error, len(c.members))
	for i, member := range c.members {
		found[i] = member.CheckSums(challenge, projections)
	}
	return found
}

func (c cohort) evaluator(t *testing.T, first []byte, rotations ...int) *ckks.Evaluator {
	t.Helper()
	second := c.gather(t, (*Member).RelinearisationSecond)
	relinearisation, err := c.coordinator.Relinearisation(first, second)
	if err != nil {
		t.Fatal(err)
	}
	var keys []*rlwe.GaloisKey
	level := c.params.MaxLevel()
	for _, slots := range rotations {
		shares := c.gather(t, func(m *Member) ([]byte, error) { return m.Rotation(slots, level) })
		key, err := c.coordinator.Rotation(slots, level, shares)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, key)
	}
	return ckks.NewEvaluator(c.params, rlwe.NewMemEvaluationKeySet(relinearisation, keys...))
}

func (c cohort) encrypt(t *testing.T, key *rlwe.PublicKey, values []float64) *rlwe.Ciphertext {
	t.Helper()
	pt := ckks.NewPlaintext(c.params, c.params.MaxLevel())
	if err := ckks.NewEncoder(c.params).Encode(values, pt); err != nil {
		t.Fatal(err)
	}
	ct, err := rlwe.NewEncryptor(c.params, key).EncryptNew(pt)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

// noise is for results with as many different slots as there are.
func (c cohort) noise() *flood.Noise {
	return flood.New(c.set.LightDeviation(c.params.MaxSlots()), c.params.MaxSlots())
}

// client has a key of its own, which the cohort's results are switched to.
type client struct {
	secret *rlwe.SecretKey
	public *rlwe.PublicKey
}

func newClient(c cohort) client {
	secret, public := rlwe.NewKeyGenerator(c.params).GenKeyPairNew()
	return client{secret, public}
}

func (c cohort) decrypt(t *testing.T, to client, ct *rlwe.Ciphertext) []float64 {
	t.Helper()
	shares := c.gather(t, func(m *Member) ([]byte, error) { return m.Switch(to.public, ct, c.noise()) })
	switched, err := c.coordinator.Switch(ct, shares)
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, c.params.MaxSlots())
	pt := rlwe.NewDecryptor(c.params, to.secret).DecryptNew(switched)
	if err := ckks.NewEncoder(c.params).Decode(pt, values); err != nil {
		t.Fatal(err)
	}
	return values
}

func ramp(count int) []float64 {
	values := make([]float64, count)
	for i := range values {
		values[i] = math.Sin(float64(i))
	}
	return values
}

func near(t *testing.T, what string, got, expected []float64) {
	t.Helper()
	worst := 0.0
	for i := range expected {
		worst = max(worst, math.Abs(got[i]-expected[i]))
	}
	if !(worst < 1.0/(1<<10)) {
		t.Errorf("%s: off by %v", what, worst)
	}
	t.Logf("%s: off by %.2g", what, worst)
}

func TestACohortComputesTogether(t *testing.T) {
	for _, count := range []int{2, 3, 5} {
		t.Run(fmt.Sprint(count), func(t *testing.T) {
			c := newCohort(t, count, 2, 13, 9)
			key, first := c.publicKey(t)
			to := newClient(c)
			evaluator := c.evaluator(t, first, 3)
			x := ramp(c.params.MaxSlots())
			ct := c.encrypt(t, key, x)
			near(t, "an encryption", c.decrypt(t, to, ct), x)

			square, err := evaluator.MulRelinNew(ct, ct)
			if err != nil {
				t.Fatal(err)
			}
			if err := evaluator.Rescale(square, square); err != nil {
				t.Fatal(err)
			}
			turned, err := evaluator.RotateNew(square, 3)
			if err != nil {
				t.Fatal(err)
			}
			expected := make([]float64, len(x))
			for i := range x {
				y := x[(i+3)%len(x)]
				expected[i] = y * y
			}
			near(t, "a rotated square", c.decrypt(t, to, turned), expected)
		})
	}
}

// TestARefreshGivesLevelsBack refreshes values that repeat in their ciphertext, whose other coefficients hold what must not
// come through.
func TestARefreshGivesLevelsBack(t *testing.T) {
	c := newCohort(t, 3, 8, 14, 9)
	key, _ := c.publicKey(t)
	to := newClient(c)
	slots := c.params.MaxSlots()
	for _, period := range []int{slots, 128} {
		label := fmt.Sprint(period)
		x := make([]float64, slots)
		for i := range x {
			x[i] = math.Sin(float64(i % period))
		}
		stained := slices.Clone(x)
		if period < slots {
			for i := range slots / 2 {
				stained[i] += 0.5 // and -0.5 in the other half: the mean over all repetitions is that of x
				stained[i+slots/2] -= 0.5
			}
		}
		ct := c.encrypt(t, key, stained)
		ct.Resize(1, 5)
		noise := flood.New(c.set.RefreshDeviation(period, 3), period)
		shares := c.gather(t, func(m *Member) ([]byte, error) { return m.Refresh(label, ct.Value[1], 6, noise) })
		fresh, err := c.coordinator.Refresh(label, ct, 6, period, shares)
		if err != nil {
			t.Fatal(err)
		}
		if fresh.Level() != 6 {
			t.Errorf("a refresh came back at level %d", fresh.Level())
		}
		got := c.decrypt(t, to, fresh)
		square := 0.0
		for i := range x {
			square += (got[i] - x[i]) * (got[i] - x[i]) / float64(slots)
		}
		// The refresh's noise, and what each member adds to its share of the decryption.
		expected := math.Hypot(math.Exp2(-params.RefreshBits), math.Sqrt(3)*math.Exp2(-14))
		if ratio := math.Sqrt(square) / expected; math.Abs(ratio-1) > 0.3 {
			t.Errorf("period %d: values are off by %v of the noise that members add", period, ratio)
		}
		if _, err := c.members[0].Refresh(label, ct.Value[1], 6, noise); err == nil || !strings.Contains(err.Error(), "used before") {
			t.Errorf("common polynomials were used twice: %v", err)
		}
		ct.Resize(1, 1)
		if _, err := c.members[0].Refresh(label+" again", ct.Value[1], 6, noise); err == nil {
			t.Error("a ciphertext without room for masks was refreshed")
		}
	}
}

func TestFewerThanAllMembersDecryptNothing(t *testing.T) {
	c := newCohort(t, 3, 1, 12, 9)
	key, _ := c.publicKey(t)
	to := newClient(c)
	x := ramp(c.params.MaxSlots())
	ct := c.encrypt(t, key, x)
	shares := c.gather(t, func(m *Member) ([]byte, error) { return m.Switch(to.public, ct, c.noise()) })
	without := NewCoordinator(c.params, c.coordinator.common, 2)
	switched, err := without.Switch(ct, shares[:2])
	if err != nil {
		t.Fatal(err)
	}
	values := make([]float64, c.params.MaxSlots())
	pt := rlwe.NewDecryptor(c.params, to.secret).DecryptNew(switched)
	if err := ckks.NewEncoder(c.params).Decode(pt, values); err != nil {
		t.Fatal(err)
	}
	hits := 0
	for i := range x {
		if math.Abs(values[i]-x[i]) < 0.1 {
			hits++
		}
	}
	if hits > len(x)/10 {
		t.Errorf("two of three members' shares give %d of %d values", hits, len(x))
	}
}

func TestTheBudgetOfDecryptionsEnds(t *testing.T) {
	c := newCohort(t, 2, 1, 12, 2)
	key, _ := c.publicKey(t)
	to := newClient(c)
	ct := c.encrypt(t, key, ramp(8))
	for range 2 {
		c.decrypt(t, to, ct)
	}
	if _, err := c.members[0].Switch(to.public, ct, c.noise()); err == nil || !strings.Contains(err.Error(), "budget") {
		t.Errorf("a third result was handed out: %v", err)
	}
}

func TestWrongSharesAreBlamedOnTheirMember(t *testing.T) {
	c := newCohort(t, 3, 1, 12, 9)
	shares := c.gather(t, (*Member).PublicKey)
	for name, wrong := range map[string][]byte{
		"cut short": shares[1][:100], "missing": nil, "no residues": bytes.Repeat([]byte{0xff}, len(shares[1])),
	} {
		fresh := NewCoordinator(c.params, &Common{seed: c.coordinator.common.seed, used: map[string]bool{}}, 3)
		_, err := fresh.PublicKey([][]byte{shares[0], wrong, shares[2]})
		if err == nil || !strings.HasPrefix(err.Error(), "member 1: ") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := c.coordinator.PublicKey(shares[:2]); err == nil {
		t.Error("a cohort of three was content with two shares")
	}
}

func TestContributionsAllCount(t *testing.T) {
	a, b := make([]byte, ContributionBytes), make([]byte, ContributionBytes)
	first, err := NewCommon([][]byte{a, b})
	if err != nil {
		t.Fatal(err)
	}
	b[31] = 1
	second, err := NewCommon([][]byte{a, b})
	if err != nil {
		t.Fatal(err)
	}
	if first.seed == second.seed {
		t.Error("the last member's contribution changes nothing")
	}
	if _, err := NewCommon([][]byte{a, b[:31]}); err == nil {
		t.Error("a contribution that is too short was accepted")
	}
}
