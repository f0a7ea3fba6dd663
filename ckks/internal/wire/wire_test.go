package wire

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/params"
)

func TestLimbsOfEveryWidthComeBack(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for bits := 20; bits <= 60; bits++ {
		modulus := uint64(1)<<bits - 1 - rng.Uint64N(1<<10)
		for _, count := range []int{8, 64, 4096} {
			limb := make([]uint64, count)
			for i := range limb {
				limb[i] = rng.Uint64N(modulus)
			}
			limb[0], limb[count-1] = modulus-1, modulus-1
			data := appendLimb(nil, limb, modulus)
			if len(data) != limbBytes(modulus, count) {
				t.Fatalf("%d bits: %d bytes, not %d", bits, len(data), limbBytes(modulus, count))
			}
			read := make([]uint64, count)
			if err := readLimb(data, read, modulus); err != nil {
				t.Fatal(err)
			}
			for i := range limb {
				if limb[i] != read[i] {
					t.Fatalf("%d bits, coefficient %d: %d, not %d", bits, i, read[i], limb[i])
				}
			}
		}
	}
}

func TestCoefficientsThatAreNotReducedAreWrittenReduced(t *testing.T) {
	modulus := uint64(1)<<28 - 57
	written := []uint64{modulus, 2*modulus - 1, 5, modulus + 3, 0, 1, 2, 3}
	read := make([]uint64, len(written))
	if err := readLimb(appendLimb(nil, written, modulus), read, modulus); err != nil {
		t.Fatal(err)
	}
	for i := range written {
		if read[i] != written[i]%modulus {
			t.Errorf("%d was read as %d", written[i], read[i])
		}
	}
}

func TestCoefficientsBeyondTheirPrimeAreRefused(t *testing.T) {
	modulus := uint64(1)<<28 - 57
	data := appendLimb(nil, []uint64{1, 2, modulus, 4, 5, 6, 7, 8}, 1<<28)
	if readLimb(data, make([]uint64, 8), modulus) == nil {
		t.Error("a coefficient equal to its prime was accepted")
	}
}

func built(t *testing.T) ckks.Parameters {
	set, ok := params.Choose(1, 12)
	if !ok {
		t.Fatal("one level fits degree 2^12")
	}
	made, err := set.Build()
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestKeysComeBackAndAreChecked(t *testing.T) {
	p := built(t)
	generator := rlwe.NewKeyGenerator(p)
	secret := generator.GenSecretKeyNew()
	level := p.MaxLevel()
	compressed := rlwe.EvaluationKeyParameters{LevelQ: &level, Compressed: true}
	key := generator.GenGaloisKeyNew(p.GaloisElement(3), secret, compressed)
	data := AppendKey(nil, p, &key.EvaluationKey)
	if len(data) != KeyBytes(p, level) {
		t.Fatalf("%d bytes, not %d", len(data), KeyBytes(p, level))
	}
	read, err := ReadKey(data, p, level)
	if err != nil {
		t.Fatal(err)
	}
	if err := key.Expand(p, nil); err != nil {
		t.Fatal(err)
	}
	if !read.GadgetCiphertext.Equal(&key.GadgetCiphertext) {
		t.Error("the key that was read is another one")
	}
	if _, err := ReadKey(data[:len(data)-1], p, level); err == nil {
		t.Error("a key that is cut short was accepted")
	}
	if _, err := ReadKey(data, p, level-1); err == nil {
		t.Error("a key for another level was accepted")
	}
	full := bytes.Repeat([]byte{0xff}, len(data))
	if _, err := ReadKey(full, p, level); err == nil {
		t.Error("coefficients beyond their primes were accepted")
	}
}

func TestResultsComeBackAndAreChecked(t *testing.T) {
	p := built(t)
	ct := ckks.NewCiphertext(p, 1, 0)
	for i := range ct.Value[0].Coeffs[0] {
		ct.Value[0].Coeffs[0][i], ct.Value[1].Coeffs[0][i] = uint64(i), uint64(7*i)
	}
	data, err := AppendResult(nil, p, ct)
	if err != nil || len(data) != ResultBytes(p, 0) {
		t.Fatalf("%d bytes, not %d: %v", len(data), ResultBytes(p, 0), err)
	}
	read, err := ReadResult(data, p, 0)
	if err != nil {
		t.Fatal(err)
	}
	if !read.Value[0].Equal(&ct.Value[0]) || !read.Value[1].Equal(&ct.Value[1]) {
		t.Error("the result that was read is another one")
	}
	if _, err := ReadResult(data[1:], p, 0); err == nil {
		t.Error("a result that is cut short was accepted")
	}
	if _, err := AppendResult(nil, p, ckks.NewCiphertext(p, 2, 1)); err == nil {
		t.Error("a result in three parts was sent")
	}
}
