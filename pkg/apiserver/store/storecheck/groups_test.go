// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storecheck

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/apiserver/store/owners"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/witness"
)

// round lets the guard look at the groups, with what it does in the background, and write the list.
func (m *main) round(t *testing.T, g *Guard) {
	t.Helper()
	g.groups.looked = time.Time{} // some time later
	for range 2 {
		if err := g.lookOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		if g.groups.search != nil {
			<-g.groups.search.done
		}
		g.groups.looked = time.Time{}
	}
	if err := g.lookOnce(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(g.groups.changes) > 0 {
		if err := g.raise(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// later makes what is looked at again from time to time due.
func later(g *Guard) {
	g.groups.counted = time.Time{}
	if g.refusal != nil {
		g.refusal.counted = time.Time{}
	}
}

// wantServed wants requests for JobSets to pass, and for LeaderWorkerSets to pass if the reason is empty.
func wantServed(t *testing.T, g *Guard, reason witness.Reason) {
	t.Helper()
	handler := g.WithGate(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	for path, mayFail := range map[string]bool{
		"/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/a":           false,
		"/apis/leaderworkerset.x-k8s.io/v1/namespaces/ns/leaderworkersets": true,
		"/apis/leaderworkerset.x-k8s.io/v1/leaderworkersets?watch=true":    true,
		"/apis/leaderworkerset.x-k8s.io/v1/watch/leaderworkersets":         true,
		"//apis//leaderworkerset.x-k8s.io/v1/./leaderworkersets":           true,
		"/apis":                                            false,
		"/apis/leaderworkerset.x-k8s.io":                   false,
		"/apis/leaderworkerset.x-k8s.io/v1":                false,
		"/apis/leaderworkerset.x-k8s.io/v1/featuregates":   false,
		"/apis/leaderworkerset.x-k8s.io/v1/serverhealth":   false,
		"/apis/leaderworkerset.x-k8s.io/v1/featuregates/a": true,
	} {
		want := http.StatusTeapot
		if mayFail && reason != "" {
			want = http.StatusServiceUnavailable
		}
		answer := httptest.NewRecorder()
		request := httptest.NewRequest(http.MethodGet, "http://server/", nil)
		request.URL.Path, request.URL.RawQuery, _ = strings.Cut(path, "?")
		handler.ServeHTTP(answer, request)
		if answer.Code != want || (want == http.StatusServiceUnavailable && !strings.Contains(answer.Body.String(),
			"the server does not serve leaderworkerset.x-k8s.io ("+string(reason)+")")) {
			t.Errorf("%s: %d %s, want %d", path, answer.Code, answer.Body, want)
		}
	}
}

var routed, replaced, elsewhere = Route{UID: "service"}, Route{UID: "replaced"}, Route{UID: "service", Elsewhere: true}

// lostSets are children of LeaderWorkerSets that the store does not have.
func (m *main) lostSets() {
	m.lostGroup = lwsGroup
	m.report = owners.Report{Counts: []owners.Count{{Resource: owners.Resources[0], Owned: 12, Lost: 12, Names: []string{"a/one"}}}, Owners: orphans.Owners}
}

// TestGroupsAreLookedAtWhenTheyAreRouted: a group that kube-apiserver served from a definition is refused while objects of it have owners
// that the store does not have, also after one replacement of the APIService. The other groups are served.
func TestGroupsAreLookedAtWhenTheyAreRouted(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	main.lostSets()
	g := main.started(t, store)
	wantServed(t, g, witness.ReasonNotRouted)
	main.round(t, g)
	wantServed(t, g, witness.ReasonNotRouted)
	if record := main.record(t); record.Refusal != nil {
		t.Errorf("a group that is left to another controller is refused: %+v", record.Refusal)
	}

	main.routes[lwsGroup] = routed
	wantServed(t, g, witness.ReasonNotRouted) // also before the server has seen it
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
	refusal := main.record(t).Refusal
	if refusal == nil || !cmp.Equal(refusal.Groups, []string{lwsGroup}) || refusal.AtStake[0].Count != 12 {
		t.Fatalf("the refusal is %+v", refusal)
	}
	checkLost(t, main, refusal)
	wantServed(t, main.started(t, store), witness.ReasonNotChecked) // a second server has not looked yet

	main.report = owners.Report{}
	later(g)
	main.round(t, g)
	wantServed(t, g, "")
	if record := main.record(t); record.Refusal != nil || !cmp.Equal(record.Groups, witness.Groups{jobset.GroupName: "", lwsGroup: "service"}) {
		t.Errorf("the record is %+v", record)
	}
	wantServed(t, main.started(t, store), "")
}

// TestGroupsThatCome has groups that no server has looked at: one that is switched on, and one of a new version.
func TestGroupsThatCome(t *testing.T) {
	t.Parallel()
	for name, definitions := range map[string][]owners.Definition{
		"children of unknown owners": nil,
		"a hidden definition":        {{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			delete(main.routes, lwsGroup)
			main.started(t, store)
			main.routes[lwsGroup] = routed
			want := witness.ReasonCustomResources
			if main.definitions = definitions; definitions == nil {
				main.lostSets()
				want = witness.ReasonUnknownOwners
			}
			g := main.started(t, store)
			wantServed(t, g, witness.ReasonNotChecked)
			main.round(t, g)
			wantServed(t, g, want)
			main.definitions, main.report = nil, owners.Report{}
			later(g)
			main.round(t, g)
			wantServed(t, g, "")
		})
	}
}

// TestReplacedAPIService: a group stays served under a new APIService unless there is a definition, whatever deletions are under way. A
// server that starts looks first, and one that has seen kube-apiserver serve the group looks again.
func TestReplacedAPIService(t *testing.T) {
	t.Parallel()
	hidden := []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}
	for name, tc := range map[string]struct {
		definitions []owners.Definition
		restart     bool
		first, want witness.Reason
	}{
		"while the server runs":                      {},
		"while the server runs, beside a definition": {definitions: hidden, want: witness.ReasonCustomResources},
		"while no server runs":                       {restart: true, first: witness.ReasonNotChecked},
		"while no server runs, beside a definition":  {definitions: hidden, restart: true, first: witness.ReasonNotChecked, want: witness.ReasonCustomResources},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store, main := newMember(t), newMain()
			main.routes[lwsGroup] = routed
			g := main.started(t, store)
			main.lostSets() // deletions are under way
			main.definitions, main.routes[lwsGroup] = tc.definitions, replaced
			if tc.restart {
				g = main.started(t, store)
			}
			wantServed(t, g, tc.first)
			main.round(t, g)
			wantServed(t, g, tc.want)
		})
	}
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = routed
	g := main.started(t, store)
	main.routes[lwsGroup] = elsewhere
	main.round(t, g)
	main.lostSets()
	main.routes[lwsGroup] = routed
	wantServed(t, main.started(t, store), witness.ReasonNotChecked)
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
}

// TestVacantDefinitions: a definition that had no objects shortly before it was hidden has none.
func TestVacantDefinitions(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	g := main.started(t, store)
	main.round(t, g)
	main.routes[lwsGroup] = routed
	main.definitions = []owners.Definition{{GroupResource: lwsResource, HiddenBy: "v1.leaderworkerset.x-k8s.io"}}
	main.round(t, g)
	wantServed(t, g, "")
}

// TestGroupsOfOlderVersions: a store without a list has served the groups of which it has created objects.
func TestGroupsOfOlderVersions(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	g := main.started(t, store)
	key, err := g.store.read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	key.Groups = nil
	if _, err := g.store.write(t.Context(), &key.Key, key.ModRevision); err != nil {
		t.Fatal(err)
	}
	main.change(t, func(r *witness.Record) *witness.Record { r.Groups = nil; return r })
	main.created = sets.New(jobset.GroupName)
	main.lostSets()
	g = main.started(t, store)
	wantServed(t, g, witness.ReasonNotChecked)
	main.round(t, g)
	wantServed(t, g, witness.ReasonUnknownOwners)
	if record := main.record(t); !cmp.Equal(record.Groups, witness.Groups{jobset.GroupName: ""}) {
		t.Errorf("the record is %+v", record)
	}
}

// TestUnknownRoutesChangeNothing: a main API that does not answer keeps closed what is closed, and open what is open.
func TestUnknownRoutesChangeNothing(t *testing.T) {
	t.Parallel()
	store, main := newMember(t), newMain()
	main.routes[lwsGroup] = elsewhere
	g := main.started(t, store)
	main.routes, main.err = nil, http.ErrHandlerTimeout
	g.groups.looked = time.Time{}
	if err := g.lookOnce(t.Context()); err == nil {
		t.Error("no error")
	}
	wantServed(t, g, witness.ReasonNotRouted)
}
