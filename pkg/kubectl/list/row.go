// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	batchv1alpha1 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/batch/v1alpha1"
	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2/helper"
	lwshelper "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/leaderworkerset/v1/helper"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// Row is one object, as -o json prints it. Its fields are described in docs/kubectl.md.
type Row struct {
	Kind      string `json:"kind"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Phase     string `json:"phase"`
	Reason    string `json:"reason,omitempty"`
	// Ready is the number of parts that are ready or have succeeded, of Wanted: Jobs, steps, or groups.
	Ready  int64 `json:"ready"`
	Wanted int64 `json:"wanted"`
	// Attempt is the number of the current attempt of a JobSet, and LastAttempt that of the last one which it can reach.
	Attempt     int64 `json:"-"`
	LastAttempt int64 `json:"-"`
	// Queue is the value of the label kueue.x-k8s.io/queue-name.
	Queue      string      `json:"queue,omitempty"`
	CreateTime metav1.Time `json:"createTime"`

	uid             types.UID
	resourceVersion string
}

// MarshalJSON implements json.Marshaler. JobSets have fields of their own.
func (r Row) MarshalJSON() ([]byte, error) {
	type plain Row
	if r.Kind != cli.JobSet.Title {
		return json.Marshal(plain(r))
	}
	return json.Marshal(struct {
		plain
		JobsReady   int64 `json:"jobsReady"`
		Jobs        int64 `json:"jobs"`
		Attempt     int64 `json:"attempt"`
		LastAttempt int64 `json:"lastAttempt"`
	}{plain(r), r.Ready, r.Wanted, r.Attempt, r.LastAttempt})
}

func (r *Row) describe(object *metav1.ObjectMeta) {
	r.Namespace, r.Name, r.Queue = object.Namespace, object.Name, object.Labels[jobsetv1alpha2.QueueNameKey]
	r.CreateTime, r.uid, r.resourceVersion = object.CreationTimestamp, object.UID, object.ResourceVersion
}

// table are the columns of the server's table of sets by their names in lower case, with the index of each. It has the words and numbers
// of `kubectl get jobsets -o wide`.
type table map[string]int

func newTable(columns []metav1.TableColumnDefinition) table {
	t := table{}
	for i := range columns {
		t[strings.ToLower(columns[i].Name)] = i
	}
	return t
}

// complete returns whether the table has all that a row needs. That of a custom resource has not.
func (t table) complete() bool {
	for _, name := range []string{"phase", "ready", "attempt", "reason"} {
		if _, found := t[name]; !found {
			return false
		}
	}
	return true
}

func (t table) row(from *metav1.TableRow) (Row, error) {
	cell := func(name string) string {
		if i := t[name]; i < len(from.Cells) && from.Cells[i] != nil {
			return fmt.Sprint(from.Cells[i])
		}
		return ""
	}
	r := Row{Kind: cli.JobSet.Title, Phase: cell("phase"), Reason: cell("reason")}
	r.Ready, r.Wanted = fraction(cell("ready"))
	r.Attempt, r.LastAttempt = fraction(cell("attempt"))
	object := metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(from.Object.Raw, &object); err != nil {
		return r, fmt.Errorf("reading the table of the server: %w", err)
	}
	r.describe(&object.ObjectMeta)
	return r, nil
}

// fraction reads numbers like 3/4.
func fraction(text string) (part, whole int64) {
	first, second, _ := strings.Cut(text, "/")
	part, _ = strconv.ParseInt(first, 10, 64)
	whole, _ = strconv.ParseInt(second, 10, 64)
	return part, whole
}

// orders are the values of --sort-by. All end with namespace and name.
var orders = map[string]func(a, b *Row) int{
	"name":    func(*Row, *Row) int { return 0 },
	"age":     func(a, b *Row) int { return b.CreateTime.Compare(a.CreateTime.Time) },
	"phase":   func(a, b *Row) int { return cmp.Compare(a.Phase, b.Phase) },
	"ready":   func(a, b *Row) int { return cmp.Compare(a.share(), b.share()) },
	"attempt": func(a, b *Row) int { return cmp.Compare(b.Attempt, a.Attempt) },
}

// orderNames are the names of the orders, as the help lists them.
var orderNames = []string{"name", "age", "phase", "ready", "attempt"}

func sortRows(rows []Row, by string) {
	order := orders[by]
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(order(&a, &b), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), byKind(&a, &b))
	})
}

// share is how much of the set is ready. A set without Jobs lacks nothing.
func (r *Row) share() float64 {
	if r.Wanted == 0 {
		return 1
	}
	return float64(r.Ready) / float64(r.Wanted)
}

// columns are the columns for humans. Narrow terminals leave out those that matter least.
func columns(allNamespaces bool) []cli.Column {
	shown := []cli.Column{
		{Title: "NAME"}, {Title: "PHASE"}, {Title: "READY"}, {Title: "ATTEMPT", Drop: 2}, {Title: "QUEUE", Drop: 3}, {Title: "AGE", Drop: 4},
		{Title: "REASON", Least: 12, Drop: 1},
	}
	if allNamespaces {
		shown = append([]cli.Column{{Title: "NAMESPACE"}}, shown...)
	}
	return shown
}

// phaseColors are the colors of the phases; others are not painted.
var phaseColors = map[string]cli.Color{
	helper.PhaseUnreadable: cli.Bad, helper.PhaseRunning: cli.Good, helper.PhaseCompleted: cli.Good, helper.PhaseFailed: cli.Bad,
	helper.PhaseRestarting: cli.Busy, helper.PhaseStarting: cli.Busy, helper.PhasePending: cli.Busy,
	string(batchv1alpha1.PhaseWaiting): cli.Busy, lwshelper.PhaseAvailable: cli.Good, lwshelper.PhaseProgressing: cli.Busy,
	lwshelper.PhaseUpdating: cli.Busy,
	lwshelper.PhasePaused:   cli.Quiet, helper.PhaseSuspended: cli.Quiet, helper.PhaseTerminating: cli.Quiet, phaseDeleted: cli.Quiet,
}

// cells are the row for humans. Beside objects of other kinds, the name has the kind before it, as commands take it.
func (o *options) cells(r *Row, t cli.Terminal, now time.Time) []string {
	name, attempt := r.Name, ""
	if len(o.kinds) > 1 {
		name = r.shortOf() + "/" + name
	}
	if r.Kind == cli.JobSet.Title {
		attempt = fmt.Sprintf("%d/%d", r.Attempt, r.LastAttempt)
	}
	cells := []string{
		name, t.Paint(phaseColors[r.Phase], cli.Clean(r.Phase)), fmt.Sprintf("%d/%d", r.Ready, r.Wanted), attempt, r.Queue,
		cli.Duration(now.Sub(r.CreateTime.Time)), cli.Clean(r.Reason),
	}
	if o.allNamespaces {
		cells = append([]string{r.Namespace}, cells...)
	}
	return cells
}
