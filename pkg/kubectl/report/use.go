// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
)

// Row is the sum of the runs of one namespace, user, queue or cause. Its fields are described in docs/kubectl.md.
type Row struct {
	// Name is the namespace, user, queue or cause; empty if the runs have none.
	Name string `json:"name"`
	// Runs is the number of runs without those that are part of another run, and Failed is how many of them failed.
	Runs        int64   `json:"runs"`
	Failed      int64   `json:"failed"`
	FailedShare float64 `json:"failedShare"`
	Restarts    int64   `json:"restarts"`
	// The hours are sums over all runs.
	ReadyHours       float64 `json:"readyHours"`
	AcceleratorHours float64 `json:"acceleratorHours"`
	CPUHours         float64 `json:"cpuHours"`
	// Goodput is the good time as a share of the ready time, from 0 to 1, of the runs whose good time is known. Absent if there are none.
	Goodput   *float64 `json:"goodput,omitempty"`
	LostHours float64  `json:"lostHours"`

	// good and measured are the good time, and the ready time of the runs whose good time is known, in hours.
	good, measured float64
}

const (
	millisecondsPerHour = 3_600_000
	secondsPerHour      = 3_600
)

// add adds a run. One that is part of another run is not counted.
func (r *Row) add(run *archivev1alpha1.Run, counts bool) {
	failed := run.State == archivev1alpha1.RunFailed
	if counts {
		r.Runs++
		if failed {
			r.Failed++
		}
	}
	r.Restarts += int64(run.Restarts)
	ready := float64(run.ReadyMilliseconds) / millisecondsPerHour
	r.ReadyHours += ready
	switch {
	case run.GoodMilliseconds != nil:
		good := min(ready, float64(*run.GoodMilliseconds)/millisecondsPerHour)
		r.good, r.measured, r.LostHours = r.good+good, r.measured+ready, r.LostHours+ready-good
	case failed:
		r.LostHours += ready
	}
	for _, used := range run.Resources {
		hours := float64(used.AmountSeconds) / secondsPerHour
		switch {
		case used.Name == "cpu":
			r.CPUHours += hours
		case accelerator(used.Name):
			r.AcceleratorHours += hours
		}
	}
}

// accelerator returns whether a resource counts as one: whatever is not a resource that every node has.
func accelerator(resource string) bool {
	switch resource {
	case "cpu", "memory", "ephemeral-storage":
		return false
	}
	return !strings.HasPrefix(resource, "hugepages-")
}

// complete fills in what follows from the sums.
func (r *Row) complete() {
	if r.Runs > 0 {
		r.FailedShare = float64(r.Failed) / float64(r.Runs)
	}
	if r.measured > 0 {
		goodput := r.good / r.measured
		r.Goodput = &goodput
	}
}

// use sums up by namespace, user, queue or cause.
type use struct {
	by     string
	rows   map[string]*Row
	total  Row
	owners owners
}

func newUse(by string) *use { return &use{by: by, rows: map[string]*Row{}, owners: owners{}} }

func (u *use) add(run *archivev1alpha1.Run) error {
	if err := u.owners.note(run); err != nil {
		return err
	}
	user, owned := u.owners.of(run)
	if !owned {
		user = run.User
	}
	name := u.nameOf(run, user)
	row := u.rows[name]
	if row == nil {
		if len(u.rows) >= mostRows {
			return tooMany(u.by + "s")
		}
		row = &Row{Name: strings.Clone(name)}
		u.rows[row.Name] = row
	}
	row.add(run, !owned)
	u.total.add(run, !owned)
	return nil
}

// nameOf is the value by which a run is summed up.
func (u *use) nameOf(run *archivev1alpha1.Run, user string) string {
	switch u.by {
	case byUser:
		return user
	case byQueue:
		return run.Queue
	case byCause:
		if last := record.Last(run); last != nil {
			return last.Reason
		}
		return ""
	}
	return run.Namespace
}

// sorted returns the rows with the most ready hours first.
func (u *use) sorted() []Row {
	rows := make([]Row, 0, len(u.rows))
	for _, row := range u.rows {
		row.complete()
		rows = append(rows, *row)
	}
	u.total.complete()
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.ReadyHours, a.ReadyHours), cmp.Compare(b.Runs, a.Runs), cmp.Compare(a.Name, b.Name))
	})
	return rows
}

// Report is what -o json prints by namespace, user, queue or cause.
type Report struct {
	Heading
	Rows  []Row `json:"rows"`
	Total Row   `json:"total"`
}

func (u *use) report(heading Heading) any {
	return Report{Heading: heading, Rows: u.sorted(), Total: u.total}
}

// columns are the columns for humans. Narrow terminals leave out those that matter least.
func (u *use) columns() []cli.Column {
	return []cli.Column{
		{Title: strings.ToUpper(u.by), Least: 12}, {Title: "RUNS"}, {Title: "FAILED"}, {Title: "SHARE", Drop: 5}, {Title: "RESTARTS", Drop: 4},
		{Title: "READY H", Drop: 2}, {Title: "ACCELERATOR H", Drop: 1}, {Title: "CPU H", Drop: 6}, {Title: "GOODPUT", Drop: 3},
		{Title: "HOURS LOST"},
	}
}

func (u *use) print(f *cli.Factory) error {
	rows := u.sorted()
	if len(rows) > 1 {
		u.total.Name = "TOTAL"
		rows = append(rows, u.total)
	}
	cells := make([][]string, 0, len(rows))
	for i := range rows {
		r := &rows[i]
		cells = append(cells, []string{
			cmp.Or(cli.Clean(r.Name), none), cli.Number(int(r.Runs)), cli.Number(int(r.Failed)), percent(r.FailedShare),
			cli.Number(int(r.Restarts)), hours(r.ReadyHours), hours(r.AcceleratorHours), hours(r.CPUHours), goodput(r.Goodput), hours(r.LostHours),
		})
	}
	terminal := f.Terminal()
	return terminal.Lines(f.Out, terminal.Table(u.columns(), cells)...)
}

func percent(share float64) string { return fmt.Sprintf("%.0f%%", 100*share) }

func goodput(share *float64) string {
	if share == nil {
		return "-"
	}
	return percent(*share)
}

// hours is a number of hours with one digit after the point, or none for large ones.
func hours(n float64) string {
	if n >= 100 {
		return cli.Number(int(n + 0.5))
	}
	return strconv.FormatFloat(n, 'f', 1, 64)
}

func (u *use) csv(w io.Writer) error {
	out := csv.NewWriter(w)
	lines := [][]string{{
		u.by, "runs", "failed", "failedShare", "restarts", "readyHours", "acceleratorHours", "cpuHours", "goodput", "lostHours",
	}}
	rows := u.sorted()
	for i := range rows {
		r, good := &rows[i], ""
		if r.Goodput != nil {
			good = decimal(*r.Goodput)
		}
		lines = append(lines, []string{
			record.Cell(r.Name), strconv.FormatInt(r.Runs, 10), strconv.FormatInt(r.Failed, 10), decimal(r.FailedShare),
			strconv.FormatInt(r.Restarts, 10), decimal(r.ReadyHours), decimal(r.AcceleratorHours), decimal(r.CPUHours), good, decimal(r.LostHours),
		})
	}
	return out.WriteAll(lines)
}

// decimal is a number with at most four digits after the point.
func decimal(n float64) string {
	return strings.TrimSuffix(strings.TrimRight(strconv.FormatFloat(n, 'f', 4, 64), "0"), ".")
}
