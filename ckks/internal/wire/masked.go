package wire

import (
	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// MaskedBytes is the size of a ciphertext at a level for an oblivious refresh of a value with a period: of the first part,
// the coefficients that the value has, and the second part.
func MaskedBytes(params ckks.Parameters, level, period int) int {
	return OpenedBytes(params, level, period) + PolysBytes(params, level, 1)
}

// AppendMasked writes a first part in coefficients, and a second in NTT form.
func AppendMasked(data []byte, params ckks.Parameters, period int, first, second ring.Poly) []byte {
	return AppendPolys(AppendOpened(data, params, period, first), params, second.Level(), second)
}

// ReadMasked reads a ciphertext of MaskedBytes bytes, all other coefficients of its first part zero.
func ReadMasked(data []byte, params ckks.Parameters, level, period int) (*rlwe.Ciphertext, error) {
	split := min(OpenedBytes(params, level, period), len(data))
	first, err := ReadOpened(data[:split], params, level, period)
	if err != nil {
		return nil, err
	}
	made := ckks.NewCiphertext(params, 1, level)
	params.RingQ().AtLevel(level).NTT(first, made.Value[0])
	return made, ReadPolys(data[split:], params, level, made.Value[1])
}
