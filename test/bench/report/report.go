// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package report stores the measurements of the benchmarks, and prints them as JSON, as a table, as plots and as verdicts.
package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// Scenario is what one scenario measured.
type Scenario struct {
	Name string `json:"name"`
	// Sizes describe the amount of work.
	Sizes map[string]int `json:"sizes"`
	// Runs is how often it was done.
	Runs int `json:"runs"`
	// Begun is when the first run began.
	Begun time.Time `json:"begun"`
	// Host is where.
	Host Host `json:"host"`
	// Phases are in the order in which they were done.
	Phases []*Phase `json:"phases"`
}

// Host is the machine and the versions of what ran on it.
type Host struct {
	CPUs      int    `json:"cpus"`
	Model     string `json:"model"`
	MemoryMiB int    `json:"memoryMiB"`
	System    string `json:"system"`
	Go        string `json:"go"`
	// Kubernetes is the version of kube-apiserver, Program the version of jobset-apiserver.
	Kubernetes string `json:"kubernetes"`
	Program    string `json:"program"`
	Storage    string `json:"storage,omitempty"`
}

// Phase is a part of a scenario with figures of its own.
type Phase struct {
	Name    string    `json:"name"`
	Figures []*Figure `json:"figures"`
}

// Figure is one quantity, measured once in each run.
type Figure struct {
	// Name is a path such as cpu/kube-apiserver.
	Name   string    `json:"name"`
	Unit   string    `json:"unit"`
	Values []float64 `json:"values"`
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
}

// Phase returns the phase of that name, which is added if it is new.
func (s *Scenario) Phase(name string) *Phase {
	for _, p := range s.Phases {
		if p.Name == name {
			return p
		}
	}
	p := &Phase{Name: name}
	s.Phases = append(s.Phases, p)
	return p
}

// Add adds the value of one run.
func (p *Phase) Add(name, unit string, value float64) {
	f := p.Figure(name)
	if f == nil {
		f = &Figure{Name: name, Unit: unit}
		p.Figures = append(p.Figures, f)
	}
	f.Values = append(f.Values, value)
}

// Figure returns the figure of that name, or nil.
func (p *Phase) Figure(name string) *Figure {
	for _, f := range p.Figures {
		if f.Name == name {
			return f
		}
	}
	return nil
}

// Last returns the value that was added last, or 0.
func (p *Phase) Last(name string) float64 {
	f := p.Figure(name)
	if f == nil {
		return 0
	}
	return f.Values[len(f.Values)-1]
}

// summarize computes medians. A call that was not seen in a run of a phase was done zero times in it; other figures that
// are missing in a run are not known for it.
func (s *Scenario) summarize() {
	for _, p := range s.Phases {
		runs := 0
		if wall := p.Figure("wall"); wall != nil {
			runs = len(wall.Values)
		}
		for _, f := range p.Figures {
			if f.Unit == UnitCalls {
				for len(f.Values) < runs {
					f.Values = append(f.Values, 0)
				}
			}
			f.Median, f.Min, f.Max = Median(f.Values), slices.Min(f.Values), slices.Max(f.Values)
		}
		slices.SortStableFunc(p.Figures, func(a, b *Figure) int { return cmp.Compare(rank(a.Name), rank(b.Name)) })
	}
}

// Units of figures.
const (
	UnitSeconds = "s"
	UnitMillis  = "ms"
	UnitRate    = "1/s"
	UnitMiB     = "MiB"
	UnitKiB     = "KiB"
	UnitBytes   = "B"
	UnitCalls   = "calls"
	UnitCount   = ""
)

// Median returns the middle value, or the mean of the two in the middle.
func Median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Percentile returns the value below or at which so many percent of the values are.
func Percentile(values []float64, percent float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	if len(sorted) == 0 {
		return 0
	}
	at := int(float64(len(sorted))*percent/100+0.9999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

const resultsDir = "results"

// Save writes the scenario to the output directory, in place of what an earlier call wrote.
func (s *Scenario) Save(dir string) error {
	s.summarize()
	data, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return fmt.Errorf("writing the result of %s: %w", s.Name, err)
	}
	if err := os.MkdirAll(filepath.Join(dir, resultsDir), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, resultsDir, s.Name+".json"), append(data, '\n'), 0o644)
}

// Load reads all scenarios of an output directory in the order in which they were done.
func Load(dir string) ([]*Scenario, error) {
	files, err := filepath.Glob(filepath.Join(dir, resultsDir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("--output: %s has no results; run scenarios first", dir)
	}
	var scenarios []*Scenario
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		s := &Scenario{}
		if err := json.Unmarshal(data, s); err != nil {
			return nil, fmt.Errorf("reading %s: %w", file, err)
		}
		scenarios = append(scenarios, s)
	}
	slices.SortFunc(scenarios, func(a, b *Scenario) int { return a.Begun.Compare(b.Begun) })
	return scenarios, nil
}

// Write writes the results in all forms to the directory, and the readable ones to out too.
func Write(dir string, scenarios []*Scenario, out io.Writer) error {
	verdicts := Verdicts(scenarios)
	data, err := json.MarshalIndent(verdicts, "", " ")
	if err != nil {
		return fmt.Errorf("writing verdicts: %w", err)
	}
	comparison := Comparison(scenarios) + BesideUpstream(scenarios) + Requests(scenarios)
	text := Table(scenarios) + "\n" + comparison + GrowthTable(scenarios) + "\n" + VerdictTable(verdicts)
	files := map[string][]byte{"verdicts.json": append(data, '\n'), "report.txt": []byte(text), "comparison.txt": []byte(comparison)}
	for _, s := range scenarios {
		files[s.Name+".svg"] = s.Plot()
		if growth := s.PlotGrowth(); growth != nil {
			files[s.Name+"-by-jobs.svg"] = growth
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	_, err = io.WriteString(out, text)
	return err
}
