package flood_test

import (
	"testing"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
)

// TestALiftedValueIsTheSameIntegers lifts small integers of either sign to a larger modulus.
func TestALiftedValueIsTheSameIntegers(t *testing.T) {
	set, _ := params.ChooseShared(3, 14, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	from, to := built.RingQ().AtLevel(1), built.RingQ().AtLevel(3)
	for _, period := range []int{1, 2, 1024, built.N()} {
		poly, step := from.NewPoly(), built.N()/period
		value := func(k int) int64 { return int64(k%2*2-1) * int64(k) << 30 }
		for i, s := range from.SubRings[:2] {
			for at := range poly.Coeffs[i] {
				poly.Coeffs[i][at] = 7 // where the value has no coefficient, too
				if at%step == 0 {
					poly.Coeffs[i][at] = residue(value(at/step), s.Modulus)
				}
			}
		}
		made := flood.Lift(from, poly, to, period)
		to.INTT(made, made)
		for i, s := range to.SubRings[:4] {
			for at, found := range made.Coeffs[i] {
				expected := uint64(0)
				if at%step == 0 {
					expected = residue(value(at/step), s.Modulus)
				}
				if found != expected {
					t.Fatalf("period %d, prime %d, coefficient %d: %d, not %d", period, i, at, found, expected)
				}
			}
		}
	}
}

func residue(value int64, modulus uint64) uint64 {
	if value %= int64(modulus); value < 0 {
		value += int64(modulus)
	}
	return uint64(value)
}
