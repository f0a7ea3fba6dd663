package program_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"privet/ckks/internal/program"
	"privet/ckks/internal/testmodel"
)

func TestAProgramAndItsWeightsAreRead(t *testing.T) {
	sample := testmodel.New(2, 1)
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	if len(weights.Tensor("0.weight")) != testmodel.Inputs*testmodel.Hidden || parsed.Batch != testmodel.Batch {
		t.Error("the program that was read is another one")
	}
	single, err := parsed.Single()
	if err != nil || single.Values[0].Len() != testmodel.Inputs {
		t.Errorf("one sample has %d elements: %v", single.Values[0].Len(), err)
	}
}

func TestWhatIsForOthersIsRead(t *testing.T) {
	more := []byte(`"calibration":"samples","head":{"nodes":[]},"front":{"given":[]},"format"`)
	public := bytes.Replace(testmodel.New(2, 1).Public, []byte(`"format"`), more, 1)
	if _, err := program.Parse(public); err != nil {
		t.Error(err)
	}
}

func TestWeightsOfAnotherProgramAreRefused(t *testing.T) {
	parsed, err := program.Parse(testmodel.New(2, 1).Public)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := program.ParseWeights(testmodel.New(2, 2).Private, parsed); err == nil {
		t.Error("weights of another program were accepted")
	}
}

// TestHostileProgramsAreRefused changes one thing at a time in a program that is fine.
func TestHostileProgramsAreRefused(t *testing.T) {
	public := string(testmodel.New(2, 1).Public)
	for _, change := range [][2]string{
		{`"version":1`, `"version":2`},
		{`"model":"toy"`, `"model":"toy","surprise":1`},
		{`"ring_bits":50`, `"ring_bits":65`},
		{`"weight_bits":16`, `"weight_bits":0`},
		{`"magnitude":4.0`, `"magnitude":-1`},
		{`"shape":[2,12]`, `"shape":[2,1000000000,1000000000]`},
		{`"shape":[2,12]`, `"shape":[2,-12]`},
		{`"shape":[2,12]`, `"shape":[2,13]`},
		{`"weight_shape":[12,7]`, `"weight_shape":[12]`},
		{`"weight_shape":[12,7]`, `"weight_shape":[12,-7]`},
		{`"inputs":[0],"output":1`, `"inputs":[3],"output":1`},
		{`"inputs":[0],"output":1`, `"inputs":[0],"output":0`},
		{`"inputs":[0],"output":1`, `"inputs":[0],"output":99`},
		{`"inputs":[0],"output":1`, `"inputs":[],"output":1`},
		{`"inputs":[0],"output":1`, `"inputs":[0,0],"output":1`},
		{`"degree":2`, `"degree":0`},
		{`"degree":2`, `"degree":1000000`},
		{`"op":"polynomial"`, `"op":"bootstrapping"`},
		{`"name":"y","value":3`, `"name":"y","value":4`},
		{`"batch":2}`, `"batch":0}`},
		{`"batch":2}`, `"batch":3}`},
		{`"batch":2}`, `"batch":2}{}`},
	} {
		if !strings.Contains(public, change[0]) {
			t.Fatalf("the program has no %s", change[0])
		}
		changed := strings.Replace(public, change[0], change[1], 1)
		if _, err := program.Parse([]byte(changed)); err == nil {
			t.Errorf("%s in place of %s was accepted", change[1], change[0])
		}
	}
}

func TestAProgramCutShortIsRefused(t *testing.T) {
	public := testmodel.New(2, 1).Public
	for length := range public {
		if _, err := program.Parse(public[:length]); err == nil {
			t.Fatalf("%d of %d bytes were accepted", length, len(public))
		}
	}
}

func TestWeightsCutShortOrAlteredAreRefused(t *testing.T) {
	sample := testmodel.New(2, 1)
	parsed, err := program.Parse(sample.Public)
	if err != nil {
		t.Fatal(err)
	}
	for _, private := range [][]byte{
		sample.Private[:len(sample.Private)-8], nil, bytes.Repeat([]byte{0xff}, 64), append([]byte{1}, sample.Private...),
	} {
		if _, err := program.ParseWeights(private, parsed); err == nil {
			t.Error(fmt.Sprintf("weights of %d bytes were accepted", len(private)))
		}
	}
}
