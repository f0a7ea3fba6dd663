package wire

import (
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Seeded is a fresh ciphertext, or an encryption of zero: its random part as a seed.
type Seeded struct {
	Seed [SeedBytes]byte
	Body ring.Poly
}

// SeededBytes is the size of a seeded ciphertext at a level.
func SeededBytes(params ckks.Parameters, level int) int {
	return SeedBytes + polyBytes(params.RingQ().AtLevel(level))
}

// AppendSeeded writes a seeded ciphertext.
func AppendSeeded(data []byte, params ckks.Parameters, c Seeded) []byte {
	data = append(slices.Grow(data, SeededBytes(params, c.Body.Level())), c.Seed[:]...)
	return AppendPolys(data, params, c.Body.Level(), c.Body)
}

// ReadSeeded reads a seeded ciphertext of SeededBytes bytes at a level, and grows its random part.
func ReadSeeded(data []byte, params ckks.Parameters, level int) (*rlwe.Ciphertext, error) {
	if len(data) != SeededBytes(params, level) {
		return nil, fmt.Errorf("a ciphertext of %d bytes where %d belong", len(data), SeededBytes(params, level))
	}
	made := ckks.NewCiphertext(params, 1, level)
	if err := ReadPolys(data[SeedBytes:], params, level, made.Value[0]); err != nil {
		return nil, err
	}
	return made, Grow([SeedBytes]byte(data[:SeedBytes]), params, made.Value[1])
}

// Grow fills a polynomial with the uniform coefficients that a seed stands for.
func Grow(seed [SeedBytes]byte, params ckks.Parameters, poly ring.Poly) error {
	generator, err := Stream(seed)
	if err != nil {
		return err
	}
	ring.NewUniformSampler(generator, params.RingQ()).AtLevel(poly.Level()).Read(poly)
	return nil
}

// ResultBytes is the size of a result: both parts of a ciphertext at a level.
func ResultBytes(params ckks.Parameters, level int) int { return PolysBytes(params, level, 2) }

// AppendResult writes a result.
func AppendResult(data []byte, params ckks.Parameters, ct *rlwe.Ciphertext) ([]byte, error) {
	if ct.Degree() != 1 {
		return nil, fmt.Errorf("a result in %d parts, not 2", ct.Degree()+1)
	}
	return AppendPolys(data, params, ct.Level(), ct.Value[0], ct.Value[1]), nil
}

// ReadResult reads a result of ResultBytes bytes.
func ReadResult(data []byte, params ckks.Parameters, level int) (*rlwe.Ciphertext, error) {
	made := ckks.NewCiphertext(params, 1, level)
	return made, ReadPolys(data, params, level, made.Value[0], made.Value[1])
}
