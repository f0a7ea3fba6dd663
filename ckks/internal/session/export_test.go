package session

import (
	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/plan"

	"github.com/tuneinsight/lattigo/v6/schemes/ckks"
)

// Agree asks the server for something, in turn or not.
func (e *Evaluator) Agree(what string) error { return e.ask(request{Request: what}) }

// RefreshZeros has zeros refreshed instead of a value.
func (e *Evaluator) RefreshZeros(point plan.Point) error {
	randomiser, err := evaluate.NewRandomiser(e.Params, e.keys.zero)
	if err != nil {
		return err
	}
	values := make(evaluate.Values, e.Plan.Layouts[point.Node].Ciphertexts)
	for i := range values {
		values[i] = ckks.NewCiphertext(e.Params, 1, e.Plan.Floor)
	}
	_, err = (&refresher{randomiser, e}).Refresh(point.Node, values, point.Level)
	return err
}

// SendRefresh asks for a refresh of what may be no ciphertext, and waits for what comes of it.
func (e *Evaluator) SendRefresh(data []byte) error {
	if err := e.request(request{Request: "refresh"}); err != nil {
		return err
	}
	if err := e.channel.Send(data); err != nil {
		return err
	}
	_, err := e.channel.ReceiveUpTo(1)
	return err
}
