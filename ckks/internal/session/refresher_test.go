package session

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/params"
	"privet/ckks/internal/wire"
)

// TestTheOwnerOfTheKeySeesUniformValues masks a large value twice and looks at it as the owner of the key does.
func TestTheOwnerOfTheKeySeesUniformValues(t *testing.T) {
	const level, period = 2, 4096
	set, _ := params.ChooseShared(3, 14, 0)
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	secret := rlwe.NewKeyGenerator(built).GenSecretKeyNew()
	encryptor := rlwe.NewEncryptor(built, secret)
	randomiser, err := evaluate.NewRandomiser(built, encryptor.EncryptZeroNew(level))
	if err != nil {
		t.Fatal(err)
	}
	r := &refresher{randomiser, &Evaluator{asker: &asker{arranged: &arranged{Arranged: Arranged{Params: built}}}}}
	value := encryptor.EncryptZeroNew(level)
	ringQ := built.RingQ().AtLevel(level)
	ringQ.AddScalar(value.Value[0], 1<<40, value.Value[0])
	before := value.CopyNew()
	var seen [2]*rlwe.Ciphertext
	for i := range seen {
		data, _, err := r.masked(value, period)
		if err != nil {
			t.Fatal(err)
		}
		if seen[i], err = wire.ReadMasked(data, built, level, period); err != nil {
			t.Fatal(err)
		}
	}
	if !value.Value[0].Equal(&before.Value[0]) || !value.Value[1].Equal(&before.Value[1]) {
		t.Error("masking changed a value that others may read")
	}
	equal := 0
	for k, coefficient := range seen[0].Value[1].Coeffs[0] {
		if coefficient == seen[1].Value[1].Coeffs[0][k] || coefficient == value.Value[1].Coeffs[0][k] {
			equal++
		}
	}
	if equal > 2 {
		t.Errorf("%d coefficients of second parts are equal", equal)
	}
	checkUniform(t, built, rlwe.NewDecryptor(built, secret).DecryptNew(seen[0]), period)
}

// checkUniform tests the coefficients that a value has in sixteen classes, modulo each prime.
func checkUniform(t *testing.T, built ckks.Parameters, opened *rlwe.Plaintext, period int) {
	t.Helper()
	ringQ := built.RingQ().AtLevel(opened.Level())
	ringQ.INTT(opened.Value, opened.Value)
	step := built.N() / period
	for i, s := range ringQ.SubRings[:opened.Level()+1] {
		const classes = 16
		var counts [classes]float64
		for k := range period {
			counts[int(float64(opened.Value.Coeffs[i][k*step])/float64(s.Modulus)*classes)]++
		}
		expected, square := float64(period)/classes, 0.0
		for _, count := range counts {
			square += (count - expected) * (count - expected) / expected
		}
		// Chi-square with 15 degrees of freedom exceeds this once in a million times.
		if square > 56 || math.IsNaN(square) {
			t.Errorf("modulo prime %d: chi-square is %.1f", i, square)
		}
	}
}
