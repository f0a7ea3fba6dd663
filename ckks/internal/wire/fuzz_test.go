package wire

import (
	"testing"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// FuzzRead reads ciphertexts, keys, openings and series of a peer's making, in a small ring.
func FuzzRead(f *testing.F) {
	literal := ckks.ParametersLiteral{LogN: 10, LogQ: []int{40, 30}, LogP: []int{40}, LogDefaultScale: 30}
	params, err := ckks.NewParametersFromLiteral(literal)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(make([]byte, SeededBytes(params, 1)), 1)
	f.Add(make([]byte, ResultBytes(params, 0)), 0)
	f.Add(make([]byte, KeyBytes(params, 1)), 1)
	f.Add(make([]byte, OpenedBytes(params, 1, 2)), 1)
	f.Add(make([]byte, SeriesBytes(3)), 0)
	f.Fuzz(func(t *testing.T, data []byte, level int) {
		level = min(max(level, 0), params.MaxLevel())
		_, _ = ReadSeeded(data, params, level)
		_, _ = ReadResult(data, params, level)
		_, _ = ReadKey(data, params, level)
		_, _ = ReadMasked(data, params, level, 2)
		_, _ = ReadOpened(data, params, level, 2)
		_, _ = ReadSeries(data)
	})
}
