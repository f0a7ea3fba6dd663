package flood_test

import (
	"math"
	"math/big"
	"testing"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
)

// TestNoiseHasItsLawAndAllElseIsUniform floods zero.
func TestNoiseHasItsLawAndAllElseIsUniform(t *testing.T) {
	set, _ := params.ChooseShared(1, 13, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	ringQ := built.RingQ().AtLevel(set.Floor())
	for _, deviation := range []float64{3.2, math.Exp2(31), math.Exp2(47)} {
		for _, period := range []int{2048, built.N()} {
			poly := ringQ.NewPoly()
			if err := flood.New(deviation, period).Add(ringQ, poly); err != nil {
				t.Fatal(err)
			}
			ringQ.INTT(poly, poly)
			square, within, others, low := 0.0, 0, 0.0, 0
			for k := range built.N() {
				value := signed(poly.Coeffs[0][k], poly.Coeffs[1][k], ringQ.SubRings[0].Modulus, ringQ.SubRings[1].Modulus)
				if k%(built.N()/period) == 0 {
					square += value * value / float64(period)
					if math.Abs(value) < deviation {
						within++
					}
					low += int(poly.Coeffs[0][k] & 1)
				} else {
					others += math.Abs(value)
				}
			}
			if ratio := math.Sqrt(square) / deviation; math.Abs(ratio-1) > 0.1 {
				t.Errorf("deviation %g, period %d: measured %g of it", deviation, period, ratio)
			}
			if part := float64(within) / float64(period); math.Abs(part-0.68) > 0.08 {
				t.Errorf("deviation %g, period %d: %g lie within it", deviation, period, part)
			}
			// Of the smallest noise many samples are zero, which is even.
			if part := float64(low) / float64(period); deviation > 100 && math.Abs(part-0.5) > 0.08 {
				t.Errorf("deviation %g, period %d: the lowest bit is set in %g", deviation, period, part)
			}
			modulus := float64(ringQ.SubRings[0].Modulus) * float64(ringQ.SubRings[1].Modulus)
			if rest := built.N() - period; rest > 0 && math.Abs(others/float64(rest)/modulus-0.25) > 0.02 {
				t.Errorf("deviation %g: other coefficients are not uniform", deviation)
			}
			ringQ.NTT(poly, poly)
			flood.Keep(ringQ, poly, period)
			ringQ.INTT(poly, poly)
			for k := range built.N() {
				if k%(built.N()/period) != 0 && poly.Coeffs[0][k] != 0 {
					t.Fatalf("coefficient %d was kept", k)
				}
			}
		}
	}
}

// TestSparseNoiseStaysInItsCoefficients floods a value that has no other coefficients.
func TestSparseNoiseStaysInItsCoefficients(t *testing.T) {
	set, _ := params.ChooseShared(1, 13, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	ringQ, poly := built.RingQ().AtLevel(set.Floor()), built.RingQ().AtLevel(set.Floor()).NewPoly()
	const period = 1024
	if err := flood.New(math.Exp2(20), period).AddSparse(ringQ, poly); err != nil {
		t.Fatal(err)
	}
	ringQ.INTT(poly, poly)
	zeros := 0
	for k, residue := range poly.Coeffs[0] {
		if residue == 0 {
			zeros++
		} else if k%(built.N()/period) != 0 {
			t.Fatalf("coefficient %d has noise", k)
		}
	}
	if zeros > built.N()-period+period/100 {
		t.Errorf("%d of %d coefficients have no noise", zeros, built.N())
	}
}

// signed is the integer of least magnitude with two residues.
func signed(a, b, p, q uint64) float64 {
	bigP, bigQ := new(big.Int).SetUint64(p), new(big.Int).SetUint64(q)
	modulus := new(big.Int).Mul(bigP, bigQ)
	inverse := new(big.Int).ModInverse(bigP, bigQ)
	value := new(big.Int).Sub(new(big.Int).SetUint64(b), new(big.Int).SetUint64(a))
	value.Mul(value, inverse).Mod(value, bigQ).Mul(value, bigP).Add(value, new(big.Int).SetUint64(a))
	if new(big.Int).Lsh(value, 1).Cmp(modulus) > 0 {
		value.Sub(value, modulus)
	}
	made, _ := new(big.Float).SetInt(value).Float64()
	return made
}
