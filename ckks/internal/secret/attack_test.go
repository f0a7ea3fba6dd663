package secret_test

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/flood"
	"privet/ckks/internal/params"
	"privet/ckks/internal/secret"
	"privet/ckks/internal/wire"
)

// opener is the owner of a key who decrypts ciphertexts for somebody who knows them.
type opener struct {
	set    params.Set
	params ckks.Parameters
	ringQ  *ring.Ring
	key    *secret.Key
	ct     *rlwe.Ciphertext
}

func newOpener(t *testing.T) opener {
	t.Helper()
	set, ok := params.ChooseShared(1, 13, 0)
	if !ok {
		t.Fatal("one level fits degree 2^13")
	}
	built, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	key, err := secret.New(built)
	if err != nil {
		t.Fatal(err)
	}
	return opener{set, built, built.RingQ().AtLevel(set.Floor()), key, zero(t, key, built, set.Floor())}
}

// zero is an encryption of zero as the key's owner gives it away.
func zero(t *testing.T, key *secret.Key, built ckks.Parameters, level int) *rlwe.Ciphertext {
	t.Helper()
	data, err := key.Zero(level)
	if err != nil {
		t.Fatal(err)
	}
	ct, err := wire.ReadSeeded(data, built, level)
	if err != nil {
		t.Fatal(err)
	}
	return ct
}

// findsKey is the attack of Li and Micciancio (EUROCRYPT 2021): whoever knows a ciphertext (a, b) and its exact decryption
// d = a + b s solves for s. Decryptions of the same ciphertext are averaged first, which takes off noise that is small.
func (o opener) findsKey(t *testing.T, deviation float64, decryptions int) bool {
	t.Helper()
	period := o.params.N()
	total, first := make([]int64, period), o.ringQ.NewPoly()
	for i := range decryptions {
		data, err := o.key.Open(o.ct, flood.New(deviation, period))
		if err != nil {
			t.Fatal(err)
		}
		opened, err := wire.ReadOpened(data, o.params, o.set.Floor(), period)
		if err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = opened
			continue
		}
		o.ringQ.Sub(opened, first, opened)
		for k := range total {
			total[k] += centred(opened.Coeffs[0][k], o.ringQ.SubRings[0].Modulus)
		}
	}
	for i, s := range o.ringQ.SubRings[:o.ringQ.Level()+1] {
		for k, sum := range total {
			mean := int64(math.Round(float64(sum) / float64(decryptions)))
			residue := (int64(first.Coeffs[i][k]) + mean) % int64(s.Modulus)
			first.Coeffs[i][k] = uint64(residue+int64(s.Modulus)) % s.Modulus
		}
	}
	return o.solves(first)
}

// solves computes (d - a) / b and tells whether it is a key: all coefficients -1, 0 or 1.
func (o opener) solves(decryption ring.Poly) bool {
	o.ringQ.NTT(decryption, decryption)
	o.ringQ.Sub(decryption, o.ct.Value[0], decryption)
	s := o.ringQ.SubRings[0]
	candidate := o.ringQ.AtLevel(0).NewPoly()
	for k, coefficient := range decryption.Coeffs[0] {
		inverse := ring.ModExp(o.ct.Value[1].Coeffs[0][k], s.Modulus-2, s.Modulus)
		candidate.Coeffs[0][k] = ring.BRed(coefficient, inverse, s.Modulus, s.BRedConstant)
	}
	o.ringQ.AtLevel(0).INTT(candidate, candidate)
	for _, coefficient := range candidate.Coeffs[0] {
		if small := centred(coefficient, s.Modulus); small < -1 || small > 1 {
			return false
		}
	}
	return true
}

func centred(residue, modulus uint64) int64 {
	if residue > modulus/2 {
		return int64(residue) - int64(modulus)
	}
	return int64(residue)
}

func TestDecryptionsTellTheKeyUnlessTheyAreFlooded(t *testing.T) {
	o := newOpener(t)
	if !o.findsKey(t, 0, 1) {
		t.Error("the attack fails on exact decryptions, so it shows nothing")
	}
	if !newOpener(t).findsKey(t, 0.5, params.Decryptions) {
		t.Error("the attack fails on decryptions under little noise, so it shows nothing")
	}
	flooded := o.set.FloodDeviation(o.params.N(), 1)
	if o.findsKey(t, flooded, 1) || newOpener(t).findsKey(t, flooded, params.Decryptions) {
		t.Error("flooded decryptions tell the key")
	}
}

func TestAKeyOpensItsBudget(t *testing.T) {
	o := newOpener(t)
	for opened := range params.Decryptions {
		if _, err := o.key.Open(o.ct, flood.New(1, 1)); err != nil {
			t.Fatalf("after %d decryptions: %v", opened, err)
		}
	}
	if _, err := o.key.Open(o.ct, flood.New(1, 1)); err == nil {
		t.Error("a key decrypted beyond its budget")
	}
}
