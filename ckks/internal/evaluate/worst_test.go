package evaluate_test

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/testmodel"
)

// TestRankOneLayersAndExtremeInputsStayWithinWhatIsFlooded measures the noise of a model whose layers have rank one, on inputs
// at the end of their range. Noise grows there by the width of a layer; to take errors as independent in each layer, as in the
// average case, gives the root of it. A key that is flooded by such an estimate is found: the control shows that real noise
// exceeds it (Guo, Nabokov, Suvanto and Johansson, USENIX Security 2024).
func TestRankOneLayersAndExtremeInputsStayWithinWhatIsFlooded(t *testing.T) {
	sample := testmodel.NewRankOne()
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	full, err := network.Build(parsed, weights)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := plan.Shared(full, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	model, err := evaluate.NewModel(full, planned)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, testmodel.Width)
	for i := range x {
		x[i] = sample.Magnitude
	}
	measured, last := 0.0, len(full.Nodes)-1
	scene := flood.Scene{Holders: 1, Magnitudes: parsed.Magnitudes()}
	scene.AnyInput = true // no interval is trusted
	limit := flood.Norms(full, planned, scene)[last]
	average := averageCase(planned, testmodel.Width, last)
	// Four keys stay below the bound. The largest noise is compared with the average case; as four keys can all be lucky,
	// more are made until one is not.
	for keys := 0; keys < 4 || (keys < 24 && measured < 3*average); keys++ {
		s := newSceneOn(t, model, [][]float64{x, x})
		measured = max(measured, s.noiseBeside(t, sample.Run(x)))
	}
	t.Logf("noise of 2^%.1f, bound 2^%.1f, average case 2^%.1f", math.Log2(measured), math.Log2(limit), math.Log2(average))
	if measured > limit || measured < limit/(1<<8) {
		t.Errorf("noise of 2^%.1f where the bound is 2^%.1f", math.Log2(measured), math.Log2(limit))
	}
	if measured < 2*average {
		t.Errorf("noise of 2^%.1f is no more than the average case's 2^%.1f, so the test shows nothing", math.Log2(measured), math.Log2(average))
	}
	real, believed := advantage(planned, last, measured), advantage(planned, last, average)
	if promised := flood.Strength(full, planned, scene); promised > real {
		t.Errorf("%.1f bits are promised, and the noise leaves %.1f", promised, real)
	}
	if believed < real+1 {
		t.Errorf("the average case believes in %.1f bits where there are %.1f, so the test shows nothing", believed, real)
	}
}

// TestTheNoiseOfAllRepetitionsOfASkewedValueIsCounted measures the noise behind an encrypted matrix that finds elements in shifted
// repetitions of a value. Folds add up what all repetitions have, where a value that just repeats has the noise of its period. The
// control shows that real noise exceeds what is left of the bound for one period.
func TestTheNoiseOfAllRepetitionsOfASkewedValueIsCounted(t *testing.T) {
	sample := testmodel.NewRankOne()
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	full, err := network.Build(parsed, weights)
	if err != nil {
		t.Fatal(err)
	}
	full = full.WithBareSquares()
	planned, err := plan.Shared(full, 1, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	full = planned.Arrange(full)
	model, err := evaluate.NewModel(full, planned)
	if err != nil {
		t.Fatal(err)
	}
	x := make([]float64, testmodel.Width)
	for i := range x {
		x[i] = sample.Magnitude
	}
	s, last := newSceneOn(t, model, [][]float64{x, x}), len(full.Nodes)-1
	maker := encrypting{model.Params, planned, rlwe.NewEncryptor(model.Params, s.secret)}
	if s.model, err = evaluate.Assemble(full, planned, model.Params, maker); err != nil {
		t.Fatal(err)
	}
	limit := flood.Norms(full, planned, flood.Scene{Holders: 1, Model: true, Magnitudes: parsed.Magnitudes()})[last]
	onePeriod := limit * math.Sqrt(float64(planned.Period(last))/float64(planned.Set.Slots()))
	measured := s.noiseBeside(t, sample.Run(x))
	t.Logf("noise of 2^%.1f, bound 2^%.1f, of one period 2^%.1f", math.Log2(measured), math.Log2(limit), math.Log2(onePeriod))
	if !planned.Rearranged {
		t.Fatal("no value is skewed, so the test shows nothing")
	}
	if measured > limit || measured < limit/(1<<8) {
		t.Errorf("noise of 2^%.1f where the bound is 2^%.1f", math.Log2(measured), math.Log2(limit))
	}
	if measured < onePeriod {
		t.Errorf("noise of 2^%.1f is no more than that of one period, 2^%.1f, so the test shows nothing", math.Log2(measured), math.Log2(onePeriod))
	}
}

// averageCase is the noise of the rank-one model if errors were independent in each layer: of the hidden layer's noise only the
// root of the sum of squares comes through the second.
func averageCase(p *plan.Plan, width, last int) float64 {
	weight := 1.0 / 8 // of every entry
	squares := float64(width) * weight * weight
	hidden := squares*p.Set.FreshVariance() + p.Set.RoundingVariance(1)
	// The square's factor is at most 2, of arguments up to 1, with a factor 1/8 of the interval.
	second := squares * (4*hidden/64 + p.Set.RoundingVariance(1))
	return math.Sqrt(second+p.Set.RoundingVariance(1)) * p.Set.Revealed(p.Period(last))
}

func advantage(p *plan.Plan, output int, norm float64) float64 {
	return params.Advantage(params.Spent(p.FloodDeviation(output), norm, p.Budget))
}

// noiseBeside is the norm of a bare result's noise over the coefficients that are revealed, beside what is exact.
func (s scene) noiseBeside(t *testing.T, exact []float64) float64 {
	t.Helper()
	p, built := s.model.Plan, s.model.Params
	ct := s.run(t, s.model, nothing{})
	ct.Scale = built.DefaultScale()
	last := len(p.Layouts) - 1
	pt := rlwe.NewDecryptor(built, s.secret).DecryptNew(ct)
	flood.Keep(built.RingQ().AtLevel(pt.Level()), pt.Value, p.Period(last))
	slots := make([]float64, built.MaxSlots())
	if err := codec.New(built).Decode(pt, slots); err != nil {
		t.Fatal(err)
	}
	total, expected := 0.0, p.Layouts[last].Fill([][]float64{exact, exact}, p.Batch)[0]
	for i := range p.Period(last) {
		total += (slots[i] - expected[i]) * (slots[i] - expected[i])
	}
	return math.Sqrt(total/float64(p.Period(last))) * p.Set.Scale()
}

// TestAnInputBeyondTheIntervalsIsNotCounted compares what is promised within the intervals with what holds for any input within
// its bound: a polynomial of degree 7 is steep beyond its interval.
func TestAnInputBeyondTheIntervalsIsNotCounted(t *testing.T) {
	sample := testmodel.New(7, 1)
	parsed, weights := testmodel.Parse(t, sample.Public, sample.Private)
	full, err := network.Build(parsed, weights)
	if err != nil {
		t.Fatal(err)
	}
	planned, err := plan.Shared(full, 1, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	scene := flood.Scene{Holders: 1, Magnitudes: parsed.Magnitudes()}
	within, beyond := flood.Strength(full, planned, scene), flood.ForAnyInput(full, planned, scene)
	t.Logf("%.1f bits within the intervals, %.1f for any input", within, beyond)
	if within < params.StatisticalBits || beyond > within-4 {
		t.Errorf("%.1f bits within the intervals, %.1f for any input", within, beyond)
	}
}
