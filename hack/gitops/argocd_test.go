// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	luajson "layeh.com/gopher-json"
)

// scriptTimeout is how long Argo CD lets a script run.
const scriptTimeout = time.Second

// argoHealth is what a script returns.
type argoHealth struct {
	Status  string `json:"status"`
	Message string `json:"message"`
}

// argoCodes are the states that Argo CD accepts from a script.
var argoCodes = []string{"Healthy", "Progressing", "Degraded", "Suspended", "Unknown"}

// scripts returns the health checks of the ConfigMap by their keys.
func scripts(t *testing.T) map[string]string {
	t.Helper()
	var config struct{ Data map[string]string }
	read(t, "artifacts/gitops/argocd-cm.yaml", &config)
	found := map[string]string{}
	for key, script := range config.Data {
		name, ok := strings.CutPrefix(key, "resource.customizations.health.")
		if !ok {
			t.Errorf("argocd-cm.yaml: Argo CD reads no key %s", key)
		}
		found[name] = script
	}
	return found
}

// assess returns the health of an object as Argo CD assesses it: a script sees the object as the global obj and has the libraries package,
// base and table, but not string or math; an object that is being deleted is Progressing, whatever the script says.
func assess(t *testing.T, scripts map[string]string, object *unstructured.Unstructured) argoHealth {
	t.Helper()
	gvk := object.GroupVersionKind()
	script, found := scripts[gvk.Group+"_"+gvk.Kind]
	if !found {
		t.Fatalf("argocd-cm.yaml has no health check for %s", gvk)
	}
	health, err := runLua(t.Context(), script, object)
	if err != nil {
		t.Fatalf("%s %s: %v", gvk.Kind, object.GetName(), err)
	}
	if object.GetDeletionTimestamp() != nil {
		return argoHealth{Status: "Progressing", Message: "Pending deletion"}
	}
	return health
}

func runLua(ctx context.Context, script string, object *unstructured.Unstructured) (health argoHealth, err error) {
	l := lua.NewState(lua.Options{SkipOpenLibs: true})
	defer l.Close()
	for name, open := range map[string]lua.LGFunction{lua.LoadLibName: lua.OpenPackage, lua.BaseLibName: lua.OpenBase, lua.TabLibName: lua.OpenTable} {
		if err := l.CallByParam(lua.P{Fn: l.NewFunction(open), Protect: true}, lua.LString(name)); err != nil {
			return health, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, scriptTimeout)
	defer cancel()
	l.SetContext(ctx)
	content, err := json.Marshal(object.Object)
	if err != nil {
		return health, err
	}
	value, err := luajson.Decode(l, content)
	if err != nil {
		return health, err
	}
	l.SetGlobal("obj", value)
	if err := l.DoString(script); err != nil {
		return health, err
	}
	if content, err = luajson.Encode(l.Get(-1)); err != nil {
		return health, err
	}
	if err := json.Unmarshal(content, &health); err != nil {
		return health, fmt.Errorf("the script returned %s: %w", content, err)
	}
	if !slices.Contains(argoCodes, health.Status) {
		return health, fmt.Errorf("the script returned the state %q", health.Status)
	}
	return health, nil
}

// TestScriptsOfConditions adds to recorded objects what a cluster shows rarely.
func TestScriptsOfConditions(t *testing.T) {
	for name, c := range map[string]struct {
		state, condition string
		want             argoHealth
	}{
		"a JobSet whose Jobs exist already":       {"jobset/starting", "ChildNameConflict", argoHealth{"Degraded", "why"}},
		"a JobSet of a former namespace":          {"jobset/starting", "NamespaceRecreated", argoHealth{"Degraded", "why"}},
		"a JobSet that a restore holds":           {"jobset/starting", "Held", argoHealth{"Suspended", "why"}},
		"a JobSet whose Jobs are refused":         {"jobset/starting", "JobCreationFailure", argoHealth{"Progressing", "0 of 2 Jobs are ready or have succeeded. why"}},
		"a JobSet without room":                   {"jobset/starting", "PlacementPending", argoHealth{"Progressing", "0 of 2 Jobs are ready or have succeeded. why"}},
		"a sequence of a former namespace":        {"sequentialjob/starting", "NamespaceRecreated", argoHealth{"Degraded", "why"}},
		"a sequence that a restore holds":         {"sequentialjob/starting", "Held", argoHealth{"Suspended", "why"}},
		"a sequence whose pods are refused":       {"sequentialjob/starting", "ResourcesUnavailable", argoHealth{"Progressing", "why"}},
		"a sequence whose step is refused":        {"sequentialjob/starting", "Available=False", argoHealth{"Progressing", "why"}},
		"a LeaderWorkerSet of a former namespace": {"leaderworkerset/available", "NamespaceRecreated", argoHealth{"Degraded", "why"}},
		"a LeaderWorkerSet without pods":          {"leaderworkerset/progressing", "PodCreationFailure", argoHealth{"Progressing", "0 of 2 groups are ready. why"}},
		"a LeaderWorkerSet without a child":       {"leaderworkerset/progressing", "ChildCreationFailure", argoHealth{"Progressing", "0 of 2 groups are ready. why"}},
		"a LeaderWorkerSet without nodes":         {"leaderworkerset/progressing", "PodsUnschedulable", argoHealth{"Progressing", "0 of 2 groups are ready. why"}},
		"a role set without a child":              {"disaggregatedset/progressing", "ChildCreationFailure", argoHealth{"Progressing", "why"}},
		"a role set with a fault of a role":       {"disaggregatedset/progressing", "RolesBlocked", argoHealth{"Progressing", "why"}},
		"a role set of a former namespace":        {"disaggregatedset/available", "NamespaceRecreated", argoHealth{"Degraded", "why"}},
	} {
		t.Run(name, func(t *testing.T) {
			object := states(t)[c.state]
			if object == nil {
				t.Fatalf("%s is not recorded", c.state)
			}
			conditions, _, err := unstructured.NestedSlice(object.Object, "status", "conditions")
			if err != nil {
				t.Fatal(err)
			}
			condition, status, _ := strings.Cut(c.condition, "=")
			added := map[string]any{"type": condition, "status": cmp.Or(status, "True"), "reason": "Test", "message": "why"}
			if err := unstructured.SetNestedSlice(object.Object, append(conditions, added), "status", "conditions"); err != nil {
				t.Fatal(err)
			}
			if got := assess(t, scripts(t), object); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
			}
		})
	}
}

// TestScriptsOfChangedObjects looks at objects whose last change the controller has not seen: their state is one of before the change.
func TestScriptsOfChangedObjects(t *testing.T) {
	for _, name := range []string{"leaderworkerset/available", "leaderworkerset/failed", "disaggregatedset/available", "podreadinessgroup/ready", "sequentialjob/running"} {
		object := states(t)[name]
		object.SetGeneration(object.GetGeneration() + 1)
		want := argoHealth{"Progressing", "The controller has not processed the last change"}
		if got := assess(t, scripts(t), object); got != want {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		if got := evaluate(t, evaluators(t), object); got != "InProgress" {
			t.Errorf("%s: Flux says %s, want InProgress", name, got)
		}
	}
	// The status of a JobSet has no observedGeneration. What the spec says about suspending counts.
	object := states(t)["jobset/suspended"]
	if err := unstructured.SetNestedField(object.Object, false, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	if got := assess(t, scripts(t), object); got.Status != "Progressing" {
		t.Errorf("a resumed set is %+v", got)
	}
	object = states(t)["jobset/running"]
	if err := unstructured.SetNestedField(object.Object, true, "spec", "suspend"); err != nil {
		t.Fatal(err)
	}
	if got := assess(t, scripts(t), object); got.Status != "Progressing" {
		t.Errorf("a set that is being suspended is %+v", got)
	}
}
