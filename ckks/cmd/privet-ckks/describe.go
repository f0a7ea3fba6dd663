package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// describe plans a program for the job's scenario and says what the plan is and what it takes. Where the private half lies beside the
// public one, weights that a run would refuse are refused.
func describe(j job) error {
	private, err := os.ReadFile(filepath.Join(j.Program, "weights.safetensors"))
	weighed := !errors.Is(err, fs.ErrNotExist)
	if weighed && err != nil {
		return err
	}
	if j.Scenario == collective {
		s, err := setup(j)
		if err == nil && weighed {
			err = s.CheckWeights(private)
		}
		if err != nil {
			return err
		}
		emit("plan", map[string]any{"plan": s.Summary()})
		return nil
	}
	public, err := os.ReadFile(filepath.Join(j.Program, "program.json"))
	if err != nil {
		return err
	}
	planned, err := terms(j).Plan(public)
	if err == nil && weighed {
		err = terms(j).CheckWeights(public, private)
	}
	if err != nil {
		return err
	}
	emit("plan", map[string]any{"plan": planned.Summary()})
	return nil
}

const collective = "collective"
