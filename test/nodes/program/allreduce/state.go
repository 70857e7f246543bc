// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package allreduce

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// State is what workers have in common after a step: each element is the sum of the contributions of all workers to all steps so far.
type State struct {
	Step     int      `json:"step"`
	Elements []uint64 `json:"elements"`
}

const (
	checkpointFile = "checkpoint.json"
	resultFile     = "result.json"
)

// Contribution is what a worker adds to one element in one step. It stands for a gradient: cheap, and different for each rank, step and
// element.
func Contribution(rank, step, element int) uint64 {
	x := uint64(rank)<<48 ^ uint64(step)<<24 ^ uint64(element)
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Expected is the state after that many steps, calculated without a network.
func Expected(workers, steps, elements int) State {
	s := State{Step: steps, Elements: make([]uint64, elements)}
	for rank := range workers {
		for step := range steps {
			for element := range s.Elements {
				s.Elements[element] += Contribution(rank, step, element)
			}
		}
	}
	return s
}

// Checkpoint returns the state that was saved last in a directory: that before the first step if there is none.
func Checkpoint(dir string, elements int) (State, error) {
	s, err := read(filepath.Join(dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return State{Elements: make([]uint64, elements)}, nil
	}
	if err == nil && len(s.Elements) != elements {
		err = fmt.Errorf("the checkpoint has %d elements, not %d", len(s.Elements), elements)
	}
	return s, err
}

// Result returns the state after the last step. The error is fs.ErrNotExist as long as there is none.
func Result(dir string) (State, error) { return read(filepath.Join(dir, resultFile)) }

func read(path string) (s State, err error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return s, err
	}
	return s, json.Unmarshal(content, &s)
}

// save writes a file as a whole or not at all: its writer may be killed at any time.
func (s State) save(path string) error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.Write(content)
	if err := errors.Join(err, file.Sync(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}
