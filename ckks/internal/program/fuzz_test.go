package program

import (
	"os"
	"testing"
)

// FuzzParse reads a public half of anybody's making, and the private half that could go with it.
func FuzzParse(f *testing.F) {
	fixtures := "../../../crates/suites/tests/fixtures/"
	for _, name := range []string{"choice", "residual"} {
		public, err := os.ReadFile(fixtures + name + "/program.json")
		if err != nil {
			f.Fatal(err)
		}
		private, err := os.ReadFile(fixtures + name + "/weights.safetensors")
		if err != nil {
			f.Fatal(err)
		}
		f.Add(public, private)
	}
	f.Fuzz(func(t *testing.T, public, private []byte) {
		if parsed, err := Parse(public); err == nil {
			_, _ = ParseWeights(private, parsed)
		}
	})
}
