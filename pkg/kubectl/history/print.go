// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"encoding/csv"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	archivev1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive/v1alpha1"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/record"
)

// printer prints pages of runs.
type printer interface {
	page(runs []archivev1alpha1.Run) error
	end() error
}

func (o *options) printer(f *cli.Factory, now time.Time) printer {
	switch {
	case o.forHumans():
		t := &table{options: o, terminal: f.Terminal(), factory: f, now: now}
		t.rows = cli.Rows{Columns: t.columns()}
		return t
	case o.output.Is(formatCSV):
		return &sheet{Writer: csv.NewWriter(f.Out)}
	}
	return &data{options: o, factory: f}
}

// data prints the runs as one list of the API, at the end.
type data struct {
	*options
	factory *cli.Factory
	list    archivev1alpha1.RunList
}

func (d *data) page(runs []archivev1alpha1.Run) error {
	d.list.Items = append(d.list.Items, runs...)
	return nil
}

func (d *data) end() error {
	version := archivev1alpha1.SchemeGroupVersion.String()
	d.list.TypeMeta = metav1.TypeMeta{APIVersion: version, Kind: cli.Run.Title + "List"}
	if d.list.Items == nil {
		d.list.Items = []archivev1alpha1.Run{}
	}
	for i := range d.list.Items {
		d.list.Items[i].TypeMeta = metav1.TypeMeta{APIVersion: version, Kind: cli.Run.Title}
	}
	return d.output.Print(d.factory.Out, &d.list)
}

// table prints lines for humans.
type table struct {
	*options
	factory  *cli.Factory
	terminal cli.Terminal
	rows     cli.Rows
	now      time.Time
}

// columns are the columns for humans. Narrow terminals leave out those that matter least.
func (t *table) columns() []cli.Column {
	shown := []cli.Column{
		{Title: "NAME"}, {Title: "OBJECT", Drop: 2}, {Title: "STATE"}, {Title: "ATTEMPTS", Drop: 5}, {Title: "LASTED", Drop: 3}, {Title: "ENDED"},
		{Title: "USER", Least: 8, Drop: 4}, {Title: "REASON", Least: 12, Drop: 1},
	}
	if t.output.Is(formatWide) {
		shown = append(shown, cli.Column{Title: "QUEUE", Drop: 6}, cli.Column{Title: "CAUSE", Drop: 7}, cli.Column{Title: "NODE", Drop: 8},
			cli.Column{Title: "BEGAN", Drop: 9})
	}
	if t.allNamespaces {
		shown = append([]cli.Column{{Title: "NAMESPACE"}}, shown...)
	}
	return shown
}

// stateColors are the colors of the states; others are not painted.
var stateColors = map[archivev1alpha1.RunState]cli.Color{
	archivev1alpha1.RunCompleted: cli.Good, archivev1alpha1.RunFailed: cli.Bad, archivev1alpha1.RunCancelled: cli.Quiet,
	archivev1alpha1.RunDeleted: cli.Quiet,
}

func (t *table) page(runs []archivev1alpha1.Run) error {
	if len(runs) == 0 {
		return nil
	}
	rows := make([][]string, 0, len(runs))
	for i := range runs {
		rows = append(rows, t.cells(&runs[i]))
	}
	return t.terminal.Lines(t.factory.Out, t.rows.Lines(t.terminal, rows)...)
}

func (t *table) end() error { return nil }

func (t *table) cells(run *archivev1alpha1.Run) []string {
	cells := []string{
		cli.Clean(run.Name), record.Object(run), t.terminal.Paint(stateColors[run.State], cli.Clean(string(run.State))),
		strconv.Itoa(int(run.Attempts)), lasted(run), cli.Ago(t.now, run.EndTime.Time), cli.Clean(run.User), cli.Clean(run.Reason),
	}
	if t.output.Is(formatWide) {
		cause, node := "", ""
		if last := record.Last(run); last != nil {
			cause, node = cli.Clean(last.Reason), cli.Clean(last.Node)
		}
		cells = append(cells, cli.Clean(run.Queue), cause, node, run.BeginTime.UTC().Format(time.RFC3339))
	}
	if t.allNamespaces {
		cells = append([]string{cli.Clean(run.Namespace)}, cells...)
	}
	return cells
}

// lasted is the time from the begin of a run to its end.
func lasted(run *archivev1alpha1.Run) string {
	return cli.Duration(run.EndTime.Sub(run.BeginTime.Time))
}

// sheet prints lines of comma-separated values.
type sheet struct {
	*csv.Writer
	begun bool
}

// header are the names of the values. They are an interface for scripts.
var header = []string{
	"namespace", "name", "kind", "object", "execution", "state", "reason", "user", "endUser", "queue", "beginTime", "endTime", "pods",
	"attempts", "restarts", "readySeconds", "goodSeconds", "cause", "node", "message",
}

func (s *sheet) page(runs []archivev1alpha1.Run) error {
	if !s.begun {
		s.begun = true
		if err := s.Write(header); err != nil {
			return err
		}
	}
	for i := range runs {
		if err := s.Write(values(&runs[i])); err != nil {
			return err
		}
	}
	return s.end()
}

func (s *sheet) end() error {
	s.Flush()
	return s.Error()
}

func values(run *archivev1alpha1.Run) []string {
	cause, node, good := "", "", ""
	if last := record.Last(run); last != nil {
		cause, node = last.Reason, last.Node
	}
	if run.GoodMilliseconds != nil {
		good = seconds(*run.GoodMilliseconds)
	}
	out := []string{
		run.Namespace, run.Name, run.Object.Kind, run.Object.Name, strconv.Itoa(int(run.Object.Execution)), string(run.State), run.Reason,
		run.User, run.EndUser, run.Queue, run.BeginTime.UTC().Format(time.RFC3339), run.EndTime.UTC().Format(time.RFC3339),
		strconv.FormatInt(run.Pods, 10), strconv.Itoa(int(run.Attempts)), strconv.Itoa(int(run.Restarts)), seconds(run.ReadyMilliseconds), good,
		cause, node, run.Message,
	}
	for i := range out {
		out[i] = record.Cell(out[i])
	}
	return out
}

// seconds are so many milliseconds in seconds.
func seconds(milliseconds int64) string {
	return strconv.FormatFloat(float64(milliseconds)/1000, 'f', -1, 64)
}
