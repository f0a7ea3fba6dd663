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
	ringQ, ringP := params.RingQ().AtLevel(key.LevelQ()), params.RingP().AtLevel(key.LevelP())
	data = append(slices.Grow(data, KeyBytes(params, key.LevelQ())), key.Seed[:]...)
	for _, digit := range key.Value {
		data = appendPoly(data, ringQ, digit[0][0].Q)
		data = appendPoly(data, ringP, digit[0][0].P)
	}
	return data
}

// ReadKey reads an evaluation key of KeyBytes bytes and grows its random part.
func ReadKey(data []byte, params ckks.Parameters, level int) (*rlwe.EvaluationKey, error) {
	if len(data) != KeyBytes(params, level) {
		return nil, fmt.Errorf("a key of %d bytes where %d belong", len(data), KeyBytes(params, level))
	}
	key := rlwe.NewEvaluationKey(params, rlwe.EvaluationKeyParameters{LevelQ: &level, Compressed: true})
	seed := [SeedBytes]byte(data[:SeedBytes])
	key.Seed = &seed
	rest := data[SeedBytes:]
	ringQ, ringP := params.RingQ().AtLevel(level), params.RingP().AtLevel(params.MaxLevelP())
	for _, digit := range key.Value {
		var err error
		if rest, err = readPoly(rest, ringQ, digit[0][0].Q); err != nil {
			return nil, err
		}
		if rest, err = readPoly(rest, ringP, digit[0][0].P); err != nil {
			return nil, err
		}
	}
	if err := key.Expand(params, nil); err != nil {
		return nil, err
	}
	return key, nil
}
