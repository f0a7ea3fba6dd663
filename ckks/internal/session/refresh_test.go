package session_test

import (
	"math"
	"strings"
	"testing"

	"privet/ckks/internal/session"
	"privet/ckks/internal/toy"
	"privet/ckks/internal/wire"
)

// deep has more levels than any ring has room for under statistical noise.
func deep() toy.Deep { return toy.NewDeep(8, 7, 5) }

func visitDeep(t *testing.T) (*session.Guest, toy.Deep, chan session.Event) {
	t.Helper()
	sample := deep()
	guest, events := visit(t, sample.Public, sample.Private)
	if guest.Plan.Refreshes() == 0 {
		t.Fatal("nothing is refreshed")
	}
	return guest, sample, events
}

func TestADeepEncryptedModelIsRefreshedByItsOwner(t *testing.T) {
	guest, sample, events := visitDeep(t)
	for range 2 {
		cost := predictDeep(t, guest, sample)
		summary, points := guest.Plan.Summary(), guest.Plan.Points()
		for who, bytes := range map[string][2]int64{
			"client": {cost.BytesSent, summary.OnlineBytesClient}, "server": {cost.BytesReceived, summary.OnlineBytesServer},
		} {
			if bytes[0] < bytes[1] || bytes[0] > bytes[1]+int64(300*(2+len(points))) {
				t.Errorf("the %s sent %d bytes, %d planned", who, bytes[0], bytes[1])
			}
		}
		// A run begins, each point takes one round, results are asked for and come.
		if most := len(points) + 3; cost.Rounds > most {
			t.Errorf("%d rounds for %d refreshes", cost.Rounds, len(points))
		}
	}
	if err := guest.Close(); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"prepared", "inferred", "inferred"} {
		if event := <-events; event.Kind != kind {
			t.Errorf("the server notified %q (%v), not %q", event.Kind, event.Err, kind)
		}
	}
}

// predictDeep compares an inference with the model in the clear.
func predictDeep(t *testing.T, guest *session.Guest, sample toy.Deep) session.Cost {
	t.Helper()
	inputs := make([][]float64, toy.Batch)
	for i := range inputs {
		inputs[i] = make([]float64, toy.Hidden)
		for k := range inputs[i] {
			inputs[i][k] = math.Sin(float64(i + 3*k))
		}
	}
	outputs, cost, err := guest.Infer([][][]float64{inputs}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	worst := 0.0
	for i, x := range inputs {
		for k, expected := range sample.Run(x) {
			worst = max(worst, math.Abs(outputs[0][i][k]-expected))
		}
	}
	if !(worst < 1.0/(1<<9)) {
		t.Errorf("off by %v", worst)
	}
	return cost
}

// TestAClientWithLittleMemoryGetsLayerAfterLayer runs a model that is refreshed, twice, and one that is not.
func TestAClientWithLittleMemoryGetsLayerAfterLayer(t *testing.T) {
	sample := deep()
	made, err := session.Terms{Scenario: session.EncryptedModel}.Plan(sample.Public)
	if err != nil {
		t.Fatal(err)
	}
	guest, _ := visitWithin(t, sample.Public, sample.Private, made.CohortMemory()-1)
	if guest.Needs() >= made.CohortMemory() {
		t.Errorf("%d bytes instead of %d", guest.Needs(), made.CohortMemory())
	}
	for range 2 {
		if cost := predictDeep(t, guest, sample); cost.BytesReceived < made.Summary().OfflineBytesServer/2 {
			t.Errorf("%d bytes came with a run: the model is not among them", cost.BytesReceived)
		}
	}
	flat := toy.New(2, 1)
	if made, err = (session.Terms{Scenario: session.EncryptedModel}).Plan(flat.Public); err != nil {
		t.Fatal(err)
	}
	guest, _ = visitWithin(t, flat.Public, flat.Private, made.CohortMemory()-1)
	inputs := samples(1)
	outputs, _, err := guest.Infer([][][]float64{inputs}, ignore)
	if err != nil {
		t.Fatal(err)
	}
	for i, x := range inputs {
		for k, expected := range flat.Run(x) {
			if math.Abs(outputs[0][i][k]-expected) > 2e-3 {
				t.Errorf("sample %d, output %d: %v, not %v", i, k, outputs[0][i][k], expected)
			}
		}
	}
}

// TestRefreshesOutOfTurnAreRefusedByName has clients ask for what does not come next.
func TestRefreshesOutOfTurnAreRefusedByName(t *testing.T) {
	for name, play := range map[string]struct {
		refreshes func(points int) int
		run       bool
		last      string
		refusal   string
	}{
		"more than the plan has": {func(points int) int { return points }, true, "refresh", "the plan has no other"},
		"results too early":      {func(points int) int { return points - 1 }, true, "decrypt", "results come after"},
		"no run":                 {func(int) int { return 0 }, false, "refresh", "a run of the model comes before"},
		"results without a run":  {func(int) int { return 0 }, false, "decrypt", "a run of the model comes before"},
	} {
		guest, _, _ := visitDeep(t)
		if play.run {
			if err := guest.Agree("run"); err != nil {
				t.Fatal(err)
			}
		}
		for i := range play.refreshes(len(guest.Plan.Points())) {
			if err := guest.RefreshZeros(guest.Plan.Points()[i]); err != nil {
				t.Fatal(err)
			}
		}
		if err := guest.Agree(play.last); err == nil || !strings.Contains(err.Error(), play.refusal) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAValueOfAnotherFormIsRefused sends too few bytes, and coefficients beyond their primes.
func TestAValueOfAnotherFormIsRefused(t *testing.T) {
	for name, form := range map[string]func(size int) []byte{
		"where": func(int) []byte { return []byte("nonsense") },
		"not below its prime": func(size int) []byte {
			data := make([]byte, size)
			for i := range data {
				data[i] = 255
			}
			return data
		},
	} {
		guest, _, events := visitDeep(t)
		if err := guest.Agree("run"); err != nil {
			t.Fatal(err)
		}
		point := guest.Plan.Points()[0]
		params, err := guest.Plan.Set.Build()
		if err != nil {
			t.Fatal(err)
		}
		size := wire.MaskedBytes(params, guest.Plan.Floor, guest.Plan.Period(point.Node))
		if err := guest.SendRefresh(form(size)); err == nil {
			t.Errorf("%s: a refresh was answered", name)
		}
		<-events // prepared
		if event := <-events; event.Kind != "failed" || !strings.Contains(event.Err.Error(), name) {
			t.Errorf("%s: the server notified %q (%v)", name, event.Kind, event.Err)
		}
	}
}
