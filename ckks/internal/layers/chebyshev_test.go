package layers

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/params"
)

func TestSeriesOfAnyForm(t *testing.T) {
	set, ok := params.Choose(6, 14)
	if !ok {
		t.Fatal("no ring")
	}
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	secret := rlwe.NewKeyGenerator(built).GenSecretKeyNew()
	keys := rlwe.NewMemEvaluationKeySet(rlwe.NewKeyGenerator(built).GenRelinearizationKeyNew(secret))
	eval, encoder := ckks.NewEvaluator(built, keys), ckks.NewEncoder(built)
	x := make([]float64, built.MaxSlots())
	for i := range x {
		x[i] = math.Cos(float64(i))
	}
	pt := ckks.NewPlaintext(built, 6)
	if err := encoder.Encode(x, pt); err != nil {
		t.Fatal(err)
	}
	ct, err := rlwe.NewEncryptor(built, secret).EncryptNew(pt)
	if err != nil {
		t.Fatal(err)
	}
	for name, keep := range map[string]func(k int) bool{
		"all":             func(int) bool { return true },
		"odd":             func(k int) bool { return k%2 == 1 },
		"even":            func(k int) bool { return k%2 == 0 },
		"even and linear": func(k int) bool { return k == 1 || k%2 == 0 },
	} {
		for _, degree := range []int{3, 5, 7, 14, 15, 31, 62, 63} {
			coefficients := make([]float64, degree+1)
			for k := range coefficients {
				if keep(k) {
					coefficients[k] = math.Sin(float64(7*k+1)) / float64(k+1)
				}
			}
			if coefficients[degree] == 0 && degree%2 == 1 && name != "even and linear" {
				continue // a series of another degree
			}
			made, err := Chebyshev(eval, name, coefficients, []*rlwe.Ciphertext{ct}, built.DefaultScale())
			if err != nil {
				t.Fatalf("%s, degree %d: %v", name, degree, err)
			}
			levels := 0
			for 1<<levels <= degree {
				levels++
			}
			if made[0].Level() < 6-levels {
				t.Errorf("%s, degree %d: at level %d", name, degree, made[0].Level())
			}
			y := make([]float64, len(x))
			if err := encoder.Decode(rlwe.NewDecryptor(built, secret).DecryptNew(made[0]), y); err != nil {
				t.Fatal(err)
			}
			worst := 0.0
			for i := range x {
				expected := 0.0
				for k, c := range coefficients {
					expected += c * math.Cos(float64(k)*math.Acos(x[i]))
				}
				worst = max(worst, math.Abs(y[i]-expected))
			}
			if !(worst < 1.0/(1<<12)) {
				t.Errorf("%s, degree %d: off by %v", name, degree, worst)
			}
		}
	}
}
