package main

import (
	"os"
	"path/filepath"
)

// describe plans a program's public half for the job's scenario and says what the plan is and what it takes.
func describe(j job) error {
	if j.Scenario == collective {
		s, err := setup(j)
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
	if err != nil {
		return err
	}
	emit("plan", map[string]any{"plan": planned.Summary()})
	return nil
}

const collective = "collective"
