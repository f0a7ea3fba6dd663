package main

import (
	"encoding/binary"
	"fmt"
	"os"
	"slices"

	"privet/ckks/internal/evaluate"
	"privet/ckks/internal/network"
	"privet/ckks/internal/program"
	"privet/ckks/internal/session"
)

// infer runs one inference: inputs and results are files of float64, little-endian, one tensor after the other.
func infer(j job) error {
	link, err := dial(j, "client")
	if err != nil {
		return err
	}
	client, err := session.Open(link, j.Hash)
	if err != nil {
		return err
	}
	if j.Statistical && !client.Terms.Statistical {
		return client.RefuseLight("ask for that (--flooding light)")
	}
	inputs, err := readInputs(j.Inputs, client.Program, client.Network)
	if err != nil {
		return err
	}
	offline, err := client.Prepare()
	if err != nil {
		return err
	}
	emit("prepared", map[string]any{"cost": offline})
	outputs, online, err := client.Infer(inputs)
	// The session ends alike whatever the results are: see session.Results.
	if closed := client.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := writeOutputs(j.Result, outputs); err != nil {
		return err
	}
	emit("result", map[string]any{
		"offline": offline, "online": online, "program_hash": client.Program.Hash, "plan": client.Plan.Summary(),
		"server": link.Peer(),
	})
	return nil
}

// inferOnEncryptedModel runs one inference of an encrypted model on inputs that stay here.
func inferOnEncryptedModel(j job) error {
	link, err := dial(j, "client")
	if err != nil {
		return err
	}
	evaluator, err := session.OpenEvaluator(link, j.Hash, room(j))
	if err != nil {
		return err
	}
	inputs, err := readInputs(j.Inputs, evaluator.Program, evaluator.Network)
	if err != nil {
		return err
	}
	offline, err := evaluator.Prepare()
	if err != nil {
		return err
	}
	emit("prepared", map[string]any{"cost": offline})
	var layers []evaluate.Step
	outputs, online, err := evaluator.Infer(inputs, func(step evaluate.Step) { layers = append(layers, step) })
	// The session ends alike whatever the results are: see session.Results.
	if closed := evaluator.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err := writeOutputs(j.Result, outputs); err != nil {
		return err
	}
	summary := evaluator.Plan.Summary()
	summary.MemoryClient = evaluator.Needs()
	emit("result", map[string]any{
		"offline": offline, "online": online, "program_hash": evaluator.Program.Hash, "plan": summary,
		"server": link.Peer(), "layers": layers, "needs": evaluator.Needs(),
	})
	return nil
}

func readInputs(path string, p *program.Program, n *network.Network) ([][][]float64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	inputs := make([][][]float64, len(p.Inputs))
	for i := range inputs {
		for range p.Batch {
			sample := make([]float64, n.Nodes[i].Size)
			size, err := binary.Decode(data, binary.LittleEndian, sample)
			if err != nil {
				return nil, fmt.Errorf("%s holds too few numbers for the model's inputs", path)
			}
			inputs[i], data = append(inputs[i], sample), data[size:]
		}
	}
	if len(data) > 0 {
		return nil, fmt.Errorf("%s holds more numbers than the model's inputs", path)
	}
	return inputs, nil
}

func writeOutputs(path string, outputs [][][]float64) error {
	data, err := binary.Append(nil, binary.LittleEndian, slices.Concat(slices.Concat(outputs...)...))
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
