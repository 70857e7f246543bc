// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package importer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// TestEverythingIsKept: the stored object equals the object of the source, but for its resource version and what the types add.
func TestEverythingIsKept(t *testing.T) {
	f := newFixture(t)
	text := lws("a", "uid-a", "70")
	if got := f.run(list(text)); got.err != nil || got.failed > 0 || got.counts[Created] != 1 {
		t.Fatalf("%+v", got)
	}
	want, got := parsed(t, text), f.stored(keyOfA)
	delete(want["metadata"].(map[string]any), "resourceVersion")
	worker := want["spec"].(map[string]any)["leaderWorkerTemplate"].(map[string]any)["workerTemplate"].(map[string]any)
	worker["metadata"] = map[string]any{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-source +stored):\n%s", diff)
	}
	if data := f.dump()[keyOfA]; !strings.HasPrefix(data, "k8s\x00") {
		t.Errorf("the object is not stored as protobuf: %.40q", data)
	}
}

// TestRepeated goes through what the store can have when an import is repeated.
func TestRepeated(t *testing.T) {
	first := lws("a", "uid-a", "70")
	newer := imageChange.Replace(lws("a", "uid-a", "71"))
	for name, tc := range map[string]struct {
		change func(*fixture)
		source Source
		prune  bool
		want   Verdict
		line   string
	}{
		"the same":                 {source: list(first), want: Unchanged},
		"the source has changed":   {source: list(newer), want: Updated},
		"the source is older":      {source: list(imageChange.Replace(lws("a", "uid-a", "69"))), line: "the source must not be older than what was imported: its resource version must be at least 70, not 69"},
		"another object":           {source: list(lws("a", "uid-b", "90")), line: "the store has another object of this name: its UID must be uid-b, not uid-a; delete one of the two"},
		"the server wrote it":      {change: func(f *fixture) { f.rewrite(newer) }, source: list(first), line: errChanged.Error()},
		"both wrote the same":      {change: func(f *fixture) { f.rewrite(newer) }, source: list(newer), want: Unchanged},
		"the server deleted it":    {change: func(f *fixture) { f.remove(keyOfA) }, source: list(first), line: errDeleted.Error()},
		"the source deleted it":    {source: list(), line: errGone.Error()},
		"it is pruned":             {source: list(), prune: true, want: Pruned},
		"the server has its own":   {change: func(f *fixture) { f.rewrite(newer) }, source: list(), prune: true},
		"it was created again":     {change: func(f *fixture) { f.remove(keyOfA) }, source: list(lws("a", "uid-b", "90")), want: Created},
		"what is stored is broken": {change: func(f *fixture) { f.put(keyOfA, "k8s\x00x") }, source: list(first), line: "decoding what is stored: "},
		"the mark is broken": {
			change: func(f *fixture) {
				f.put(testPrefix+"/store-import/leaderworkerset.x-k8s.io/leaderworkersets/ns/a", "x")
			},
			source: list(first), line: "/registry/test/store-import/leaderworkerset.x-k8s.io/leaderworkersets/ns/a in etcd: invalid character 'x' looking for beginning of value: delete the key",
		},
		"the same is refused now": {source: list(strings.Replace(first, `"size": 2`, `"size": 0`, 1)), prune: true, line: "spec.leaderWorkerTemplate.size: Invalid value: "},
		"a nameless one is refused": {
			source: list(strings.Replace(lws("", "uid-a", "71"), `"size": 2`, `"size": 0`, 1)), prune: true, line: errNameless.Error(),
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t)
			if got := f.run(list(first)); got.counts[Created] != 1 {
				t.Fatalf("%+v", got)
			}
			if tc.change != nil {
				tc.change(f)
			}
			before := f.dump()
			got := f.run(tc.source, func(i *Import) { i.Prune = tc.prune })
			switch {
			case got.err != nil:
				t.Fatal(got.err)
			case tc.line != "" && (len(got.lines) == 0 || !strings.Contains(strings.Join(got.lines, "\n"), ": "+tc.line)):
				t.Errorf("the lines are %q, want one with %q", got.lines, tc.line)
			case tc.line == "" && len(got.lines) > 0:
				t.Errorf("the lines are %q", got.lines)
			case tc.want != "" && got.counts[tc.want] != 1, tc.want == "" && len(got.counts) > 0:
				t.Errorf("%v, want 1 %s", got.counts, tc.want)
			}
			if after := f.dump(); (tc.want == "" || tc.want == Unchanged) != cmp.Equal(before, after) {
				t.Errorf("verdict %q, but the store changed:\n%s", tc.want, cmp.Diff(before, after))
			}
		})
	}
}

func (f *fixture) put(key, value string) {
	f.Helper()
	if _, err := f.client.Put(f.Context(), key, value); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) remove(key string) {
	f.Helper()
	if _, err := f.client.Delete(f.Context(), key); err != nil {
		f.Fatal(err)
	}
}

// TestDryRun writes nothing and counts the same.
func TestDryRun(t *testing.T) {
	f := newFixture(t)
	source := func() Source { return list(lws("a", "uid-a", "70"), lws("b", "uid-b", "71")) }
	got := f.run(source(), func(i *Import) { i.DryRun = true })
	if got.counts[Created] != 2 || len(f.dump()) != 0 {
		t.Errorf("%+v, %d keys", got, len(f.dump()))
	}
	if got := f.run(source()); got.counts[Created] != 2 || len(f.dump()) != 4 {
		t.Errorf("%+v, %d keys", got, len(f.dump()))
	}
}

// dying is an etcd whose client dies at a write: before the write arrives, or before its answer does.
type dying struct {
	clientv3.KV
	left    int
	arrives bool
	kill    context.CancelFunc
}

func (d *dying) Txn(ctx context.Context) clientv3.Txn { return &dyingTxn{Txn: d.KV.Txn(ctx), dying: d} }

type dyingTxn struct {
	clientv3.Txn
	*dying
	writes bool
}

func (d *dyingTxn) If(comparisons ...clientv3.Cmp) clientv3.Txn {
	d.Txn, d.writes = d.Txn.If(comparisons...), true
	return d
}

func (d *dyingTxn) Then(operations ...clientv3.Op) clientv3.Txn {
	d.Txn = d.Txn.Then(operations...)
	return d
}

func (d *dyingTxn) Commit() (*clientv3.TxnResponse, error) {
	if !d.writes {
		return d.Txn.Commit()
	}
	if d.left--; d.left >= 0 {
		return d.Txn.Commit()
	}
	if d.arrives {
		if _, err := d.Txn.Commit(); err != nil {
			return nil, err
		}
	}
	d.kill()
	return nil, errors.New("killed")
}

// TestKilledAtEveryWrite kills an import of creations, updates and deletions at each of its writes. The next one
// completes it, and the store is the same as after one import.
func TestKilledAtEveryWrite(t *testing.T) {
	first := func() Source {
		return list(lws("a", "uid-a", "70"), lws("b", "uid-b", "71"), lws("c", "uid-c", "72"))
	}
	second := func() Source {
		return list(imageChange.Replace(lws("a", "uid-a", "80")), lws("b", "uid-b", "71"), lws("d", "uid-d", "81"))
	}
	prune := func(i *Import) { i.Prune = true }
	f := newFixture(t)
	f.run(first())
	if got := f.run(second(), prune); !cmp.Equal(got.counts, map[Verdict]int{Created: 1, Updated: 1, Unchanged: 1, Pruned: 1}) || len(got.lines) > 0 {
		t.Fatalf("%+v", got)
	}
	want := f.dump()
	if len(want) != 6 {
		t.Fatalf("%d keys, want 3 objects and 3 marks", len(want))
	}
	const writes = 3
	for at := range writes {
		for _, arrives := range []bool{false, true} {
			t.Run(fmt.Sprintf("write %d arrives %t", at, arrives), func(t *testing.T) {
				f.removeAll()
				f.run(first())
				ctx, kill := context.WithCancel(t.Context())
				defer kill()
				i := &Import{
					Kinds: f.kinds, Prune: true, Report: func(name string, cause error, _ bool) {},
					Store: &Store{KV: &dying{KV: f.client, left: at, arrives: arrives, kill: kill}, Prefix: testPrefix},
				}
				if err := i.Read(ctx, second()); err != nil {
					t.Fatal(err)
				}
				if _, _, err := i.Write(ctx, i.Resources()); !errors.Is(err, context.Canceled) {
					t.Fatalf("the import ended with %v", err)
				}
				if got := f.run(second(), prune); got.err != nil || len(got.lines) > 0 {
					t.Errorf("repeated: %+v", got)
				}
				if diff := cmp.Diff(want, f.dump()); diff != "" {
					t.Errorf("(-one import +killed and repeated):\n%s", diff)
				}
			})
		}
	}
}

func (f *fixture) removeAll() {
	f.Helper()
	if _, err := f.client.Delete(f.Context(), testPrefix, clientv3.WithPrefix()); err != nil {
		f.Fatal(err)
	}
}

// TestRace: another client writes the object after the import has read it and before the import writes it.
func TestRace(t *testing.T) {
	f := newFixture(t)
	before, err := f.store.read(t.Context(), Name{GroupResource: lwsResource})
	if err != nil {
		t.Fatal(err)
	}
	o, err := f.kinds.decode(t.Context(), []byte(lws("a", "uid-a", "70")), false)
	if err != nil {
		t.Fatal(err)
	}
	f.rewrite(lws("a", "uid-z", "1"))
	if err := f.store.write(t.Context(), o, before); !errors.Is(err, errRaced) {
		t.Errorf("the write ended with %v", err)
	}
	if uid := f.stored(keyOfA)["metadata"].(map[string]any)["uid"]; uid != "uid-z" {
		t.Errorf("the object has UID %v", uid)
	}
}

func TestCompare(t *testing.T) {
	f := newFixture(t)
	f.run(list(lws("a", "uid-a", "70"), lws("b", "uid-b", "70"), lws("c", "uid-c", "70"), lws("e", "uid-e", "70")))
	var lines []string
	i := &Import{Kinds: f.kinds, Store: f.store, Report: func(name string, cause error, _ bool) { lines = append(lines, name+": "+cause.Error()) }}
	if err := i.Read(t.Context(), list(imageChange.Replace(lws("a", "uid-a", "71")), lws("b", "uid-x", "70"), lws("d", "uid-d", "1"), lws("e", "uid-e", "99"))); err != nil {
		t.Fatal(err)
	}
	before := f.dump()
	differ, err := i.Compare(t.Context(), i.Resources())
	const resource = "leaderworkersets.leaderworkerset.x-k8s.io ns/"
	want := []string{
		resource + "a: differs in metadata.generation, spec", resource + "b: its UID is uid-x at the source, and uid-b in the store",
		resource + "d: only at the source", resource + "c: only in the store",
	}
	if diff := cmp.Diff(want, lines); err != nil || differ != len(want) || diff != "" {
		t.Errorf("%d, %v (-want +got):\n%s", differ, err, diff)
	}
	if !cmp.Equal(before, f.dump()) {
		t.Error("the store changed")
	}
}
