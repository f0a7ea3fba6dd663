package wire

import (
	"fmt"

	"github.com/tuneinsight/lattigo/v6/ring"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// OpenedBytes is the size of a decryption at a level of a result whose slots repeat with a period: the coefficients of
// the powers of X^(N/period).
func OpenedBytes(params ckks.Parameters, level, period int) int {
	total := 0
	for _, s := range params.RingQ().SubRings[:level+1] {
		total += limbBytes(s.Modulus, period)
	}
	return total
}

// AppendOpened writes those coefficients of a polynomial in coefficients.
func AppendOpened(data []byte, params ckks.Parameters, period int, poly ring.Poly) []byte {
	step := params.N() / period
	for i, s := range params.RingQ().SubRings[:poly.Level()+1] {
		kept := make([]uint64, period)
		for k := range kept {
			kept[k] = poly.Coeffs[i][k*step]
		}
		data = appendLimb(data, kept, s.Modulus)
	}
	return data
}

// ReadOpened reads a decryption of OpenedBytes bytes; all other coefficients are zero.
func ReadOpened(data []byte, params ckks.Parameters, level, period int) (ring.Poly, error) {
	made := params.RingQ().AtLevel(level).NewPoly()
	if want := OpenedBytes(params, level, period); len(data) != want {
		return made, fmt.Errorf("a decryption of %d bytes where %d belong", len(data), want)
	}
	step := params.N() / period
	for i, s := range params.RingQ().SubRings[:level+1] {
		length, kept := limbBytes(s.Modulus, period), make([]uint64, period)
		if err := readLimb(data[:length], kept, s.Modulus); err != nil {
			return made, err
		}
		data = data[length:]
		for k, coefficient := range kept {
			made.Coeffs[i][k*step] = coefficient
		}
	}
	return made, nil
}
