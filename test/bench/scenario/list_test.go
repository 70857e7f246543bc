// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/generated/clientset/versioned"
)

// serveSets serves lists of so many stored sets, in pages and by label, as an API server does. Of the sets, it has only names and labels.
func serveSets(t *testing.T, s *space, sets int) versioned.Interface {
	t.Helper()
	stored := make([]jobsetv1alpha2.JobSet, sets)
	for i := range stored {
		js := s.storedSet(i)
		stored[i].Name, stored[i].Labels = js.Name, js.Labels
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		first, _ := strconv.Atoi(query.Get("continue")) // the first page has none
		limit, _ := strconv.Atoi(query.Get("limit"))
		selector, err := labels.Parse(query.Get("labelSelector"))
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		list := &jobsetv1alpha2.JobSetList{}
		list.APIVersion, list.Kind = jobsetv1alpha2.SchemeGroupVersion.String(), "JobSetList"
		for i := first; i < sets; i++ {
			if limit > 0 && len(list.Items) == limit {
				list.Continue = strconv.Itoa(i)
				break
			}
			if selector.Matches(labels.Set(stored[i].Labels)) {
				list.Items = append(list.Items, stored[i])
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(list)
	}))
	t.Cleanup(server.Close)
	client, err := versioned.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func TestWaysToListReadTheirSets(t *testing.T) {
	s := &space{runner: &runner{Env: &Env{Beside: true}}, name: "bench"}
	for sets, want := range map[int]map[string][2]int{
		2000: {"whole": {2000, 1}, "paged": {2000, 4}, "by label": {200, 1}},
		105:  {"whole": {105, 1}, "paged": {105, 5}, "by label": {11, 1}},
		1:    {"whole": {1, 1}, "paged": {1, 1}, "by label": {1, 1}},
	} {
		client, got := serveSets(t, s, sets), map[string][2]int{}
		for _, way := range waysToList(sets) {
			read, err := s.readList(t.Context(), client, way.options)
			if err != nil {
				t.Fatal(err)
			}
			if read.sets != way.sets || read.bytes == 0 {
				t.Errorf("%d sets %s: %d were read, of %d bytes; want %d", sets, way.phase, read.sets, read.bytes, way.sets)
			}
			got[way.phase] = [2]int{read.sets, read.pages}
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%d sets: sets and pages (-want +got):\n%s", sets, d)
		}
	}
}

func TestSetsAloneHaveNoLabelOfTheirPart(t *testing.T) {
	s := &space{runner: &runner{Env: &Env{}}, name: "bench"}
	if d := cmp.Diff(typicalSet("stored-00007", "bench").Labels, s.storedSet(7).Labels); d != "" {
		t.Errorf("their bytes are a published figure (-want +got):\n%s", d)
	}
}

func TestTablesAreCountedByRows(t *testing.T) {
	table := &metav1.Table{Rows: []metav1.TableRow{{}, {}}, ListMeta: metav1.ListMeta{Continue: "here"}}
	table.APIVersion, table.Kind = "meta.k8s.io/v1", "Table"
	data, err := json.Marshal(table)
	if err != nil {
		t.Fatal(err)
	}
	if n, next, err := decode(data); n != 2 || next != "here" || err != nil {
		t.Errorf("%d rows, continued at %q, error %v", n, next, err)
	}
}
