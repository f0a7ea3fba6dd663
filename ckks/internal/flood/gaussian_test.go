package flood

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"math"
	"testing"
)

// TestSamplesFarFromZeroLieSideBySide draws large samples, one in 2^36, from randomness that differs in the lowest bits: with coarse steps
// there, differences of samples would tell more than those of rounded normal variables.
func TestSamplesFarFromZeroLieSideBySide(t *testing.T) {
	const deviation, samples = 1 << 46, 64
	seen := map[int64]bool{}
	for i := range uint64(samples) {
		random := append(binary.LittleEndian.AppendUint64(nil, 1<<28+i), make([]byte, 16)...)
		noise := Noise{Deviation: deviation, Period: 1, source: bufio.NewReader(bytes.NewReader(random))}
		value, err := noise.gaussian()
		if err != nil {
			t.Fatal(err)
		}
		if far := float64(value) / deviation; math.Abs(far-7.06) > 0.01 {
			t.Fatalf("a sample of %g deviations", far)
		}
		seen[value] = true
	}
	if len(seen) != samples {
		t.Errorf("%d draws give %d samples", samples, len(seen))
	}
}
