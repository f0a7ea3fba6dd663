package wire

import (
	"fmt"
	"slices"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// SeedBytes is the size of the seed that a random part grows from.
const SeedBytes = 32

// KeyBytes is the size of an evaluation key for ciphertexts up to a level.
func KeyBytes(params ckks.Parameters, level int) int {
	special := params.MaxLevelP()
	digit := polyBytes(params.RingQ().AtLevel(level)) + polyBytes(params.RingP().AtLevel(special))
	return SeedBytes + params.BaseRNSDecompositionVectorSize(level, special)*digit
}

// AppendKey writes a compressed evaluation key.
func AppendKey(data []byte, params ckks.Parameters, key *rlwe.EvaluationKey) []byte {
	data = append(slices.Grow(data, KeyBytes(params, key.LevelQ())), key.Seed[:]...)
	return appendParts(data, gadgetParts(params, &key.GadgetCiphertext))
}

// ReadKey reads an evaluation key of KeyBytes bytes and grows its random part.
func ReadKey(data []byte, params ckks.Parameters, level int) (*rlwe.EvaluationKey, error) {
	if len(data) != KeyBytes(params, level) {
		return nil, fmt.Errorf("a key of %d bytes where %d belong", len(data), KeyBytes(params, level))
	}
	key := rlwe.NewEvaluationKey(params, rlwe.EvaluationKeyParameters{LevelQ: &level, Compressed: true})
	seed := [SeedBytes]byte(data[:SeedBytes])
	key.Seed = &seed
	if err := readParts(data[SeedBytes:], "a key", gadgetParts(params, &key.GadgetCiphertext)); err != nil {
		return nil, err
	}
	if err := key.Expand(params, nil); err != nil {
		return nil, err
	}
	return key, nil
}
