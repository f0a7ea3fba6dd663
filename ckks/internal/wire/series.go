package wire

import (
	"encoding/binary"
	"fmt"
	"math"
)

// maxCoefficient bounds what an owner may send; polynomials of larger coefficients leave the range of any result.
const maxCoefficient = 1 << 20

// SeriesBytes is the size of the coefficients of a polynomial of a degree.
func SeriesBytes(degree int) int { return 8 * (degree + 1) }

// AppendSeries writes the coefficients of a polynomial.
func AppendSeries(data []byte, coefficients []float64) []byte {
	for _, coefficient := range coefficients {
		data = binary.LittleEndian.AppendUint64(data, math.Float64bits(coefficient))
	}
	return data
}

// ReadSeries reads the coefficients of a polynomial.
func ReadSeries(data []byte) ([]float64, error) {
	made := make([]float64, len(data)/8)
	for i := range made {
		made[i] = math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:]))
		if !(math.Abs(made[i]) <= maxCoefficient) {
			return nil, fmt.Errorf("a coefficient of a polynomial is %v", made[i])
		}
	}
	return made, nil
}
