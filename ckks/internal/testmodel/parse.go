package testmodel

import (
	"testing"

	"privet/ckks/internal/program"
)

// Parse reads both halves of a program.
func Parse(t testing.TB, public, private []byte) (*program.Program, *program.Weights) {
	t.Helper()
	parsed, err := program.Parse(public)
	if err != nil {
		t.Fatal(err)
	}
	weights, err := program.ParseWeights(private, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return parsed, weights
}
