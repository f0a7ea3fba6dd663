package collective

import (
	"math/big"
	"testing"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/wire"
)

// TestARefreshTrustsTheCoordinator shows what members cannot check: that a ciphertext to be refreshed comes from the evaluation.
// Masks hide values, not a multiple of the secret as large as the modulus. docs/reference/protocols/ckks.md says so; whoever mends it
// turns this test around.
func TestARefreshTrustsTheCoordinator(t *testing.T) {
	c := newCohort(t, 2, 8, 14, 1)
	m, level := c.members[1], 5
	ringQ := c.params.RingQ().AtLevel(level)
	half := new(big.Int).Rsh(ringQ.Modulus(), 1)
	forged := ringQ.NewPoly()
	for i, s := range ringQ.SubRings[:level+1] {
		residue := new(big.Int).Mod(half, new(big.Int).SetUint64(s.Modulus)).Uint64()
		for k := range forged.Coeffs[i] {
			forged.Coeffs[i][k] = residue // a constant, in NTT form
		}
	}
	period := c.params.N()
	data, err := m.Refresh("forged", forged, 6, flood.New(c.set.RefreshDeviation(period, 2), period))
	if err != nil {
		t.Fatal(err)
	}
	share := ringQ.NewPoly()
	if err := wire.ReadPolys(data[:wire.PolysBytes(c.params, level, 1)], c.params, level, share); err != nil {
		t.Fatal(err)
	}
	truth := m.secret.Value.Q.CopyNew()
	ringQ.IMForm(*truth, *truth)
	ringQ.INTT(*truth, *truth)
	ringQ.INTT(share, share)
	values := make([]*big.Int, period)
	for k := range values {
		values[k] = new(big.Int)
	}
	ringQ.PolyToBigintCentered(share, 1, values)
	right, quarter := 0, new(big.Int).Rsh(half, 1)
	for k, value := range values {
		if (value.CmpAbs(quarter) > 0) == (truth.Coeffs[0][k] != 0) {
			right++
		}
	}
	if right != period {
		t.Errorf("a forged refresh tells where %d of %d coefficients of a secret share are zero: the page says that it tells all", right, period)
	}
}
