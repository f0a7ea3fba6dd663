package evaluate_test

import (
	"math"
	"testing"

	"github.com/tuneinsight/lattigo/v6/core/rlwe"
	"github.com/tuneinsight/lattigo/v6/schemes/ckks"

	"privet/ckks/internal/codec"
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/flood"
	"privet/ckks/internal/network"
	"privet/ckks/internal/params"
	"privet/ckks/internal/plan"
	"privet/ckks/internal/testmodel"
)

// watcher refreshes values with the key, and measures the noise that each has gathered since the refresh before.
type watcher struct {
	*evaluate.Randomiser
	scene
	network *network.Network
	sample  testmodel.Deep
	points  []plan.Point
	// values are those of all samples after `stages` of the model.
	values [][]float64
	stages int
	// spent is what all refreshes spend of statistical distance.
	spent float64
}

// Refresh stands for both parties of an oblivious refresh.
func (w *watcher) Refresh(node int, values evaluate.Values, level int) (evaluate.Values, error) {
	p, params := w.model.Plan, w.model.Params
	point := w.points[0]
	w.points = w.points[1:]
	var gathered, refreshed [][]float64
	made := make(evaluate.Values, len(values))
	noise := flood.New(p.RefreshDeviation(node, point.Value), p.Period(node))
	for i, ct := range values {
		hidden := ct.CopyNew()
		if err := w.Randomise(hidden); err != nil {
			return nil, err
		}
		hidden.Scale = params.DefaultScale()
		before, err := w.open(hidden, p.Period(node))
		if err != nil {
			return nil, err
		}
		opened := rlwe.NewDecryptor(params, w.secret).DecryptNew(hidden)
		from, to := params.RingQ().AtLevel(p.Floor), params.RingQ().AtLevel(level)
		from.INTT(opened.Value, opened.Value)
		pt := ckks.NewPlaintext(params, level)
		pt.Value.Copy(flood.Lift(from, opened.Value, to, p.Period(node)))
		if err := noise.AddSparse(to, pt.Value); err != nil {
			return nil, err
		}
		if made[i], err = rlwe.NewEncryptor(params, w.secret).EncryptNew(pt); err != nil {
			return nil, err
		}
		slots := make([]float64, params.MaxSlots())
		if err := codec.New(params).Decode(pt, slots); err != nil {
			return nil, err
		}
		gathered, refreshed = append(gathered, before), append(refreshed, slots)
	}
	w.measure(point, p.Layouts[node].Take(gathered, p.Batch, testmodel.Batch), noise.Deviation)
	w.values = p.Layouts[node].Take(refreshed, p.Batch, testmodel.Batch)
	return made, nil
}

// open gives the slots of a ciphertext's value.
func (w *watcher) open(ct *rlwe.Ciphertext, period int) ([]float64, error) {
	pt := rlwe.NewDecryptor(w.model.Params, w.secret).DecryptNew(ct)
	flood.Keep(w.model.Params.RingQ().AtLevel(pt.Level()), pt.Value, period)
	slots := make([]float64, w.model.Params.MaxSlots())
	return slots, codec.New(w.model.Params).Decode(pt, slots)
}

// measure compares values at a point with those that the values of the refresh before lead to.
func (w *watcher) measure(point plan.Point, gathered [][]float64, deviation float64) {
	stage := w.stage(point)
	total, count := 0.0, 0
	for i, x := range w.values {
		for k, exact := range w.sample.Between(x, w.stages, stage) {
			total += (gathered[i][k] - exact) * (gathered[i][k] - exact)
			count++
		}
	}
	w.stages = stage
	norm := math.Sqrt(total/float64(count)) * w.model.Plan.Set.Scale()
	w.spent += params.Spent(deviation, norm, w.model.Plan.Layouts[point.Node].Ciphertexts)
}

// stage is how far in the model a point is: each layer has an argument and a value.
func (w *watcher) stage(point plan.Point) int {
	activations := 0
	for _, node := range w.network.Nodes[:point.Node+1] {
		if node.Kind == network.Polynomial {
			activations++
		}
	}
	if point.Value {
		return 2 * activations
	}
	return 2*activations - 1
}

// TestRefreshesHideTheNoiseSinceTheRefreshBefore measures real noise at each refresh beside the tracked bound.
func TestRefreshesHideTheNoiseSinceTheRefreshBefore(t *testing.T) {
	sample := testmodel.NewDeep(8, 7, 5)
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
	inputs := make([][]float64, testmodel.Batch)
	for i := range inputs {
		inputs[i] = make([]float64, testmodel.Hidden)
		for k := range inputs[i] {
			inputs[i][k] = math.Sin(float64(i + 3*k))
		}
	}
	s := newSceneOn(t, model, inputs)
	maker := encrypting{model.Params, planned, rlwe.NewEncryptor(model.Params, s.secret)}
	if s.model, err = evaluate.Assemble(full, planned, model.Params, maker); err != nil {
		t.Fatal(err)
	}
	zero := rlwe.NewEncryptor(model.Params, s.secret).EncryptZeroNew(planned.ZeroLevel())
	randomiser, err := evaluate.NewRandomiser(model.Params, zero)
	if err != nil {
		t.Fatal(err)
	}
	w := &watcher{Randomiser: randomiser, scene: s, network: full, sample: sample, points: planned.Points(), values: inputs}
	help := evaluate.Helpers{Hiding: nothing{}, Refresher: w}
	if _, err := s.model.Run(s.evaluator, help, []evaluate.Values{{s.input}}, func(evaluate.Step) {}); err != nil {
		t.Fatal(err)
	}
	if len(w.points) > 0 || len(planned.Points()) < 2 {
		t.Errorf("%d of %d refreshes did not happen", len(w.points), len(planned.Points()))
	}
	tracked := flood.Strength(full, planned, flood.Scene{Holders: 1, Model: true, Magnitudes: parsed.Magnitudes()})
	measured := params.Advantage(w.spent)
	t.Logf("%d refreshes hide the key by %.1f bits, %.1f are tracked", len(planned.Points()), measured, tracked)
	if measured < tracked || measured > tracked+10 {
		t.Errorf("refreshes hide the key by %.1f bits where %.1f are tracked", measured, tracked)
	}
}
