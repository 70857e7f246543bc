// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/klog/v2"
	"k8s.io/klog/v2/ktesting"
	"k8s.io/utils/ptr"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/archive/archivetest"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/registry/generic/provider"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// testRun returns a run of a JobSet in namespace ns that ended some minutes ago.
func testRun(name string, minutes int) api.Run {
	key := archive.Key{Object: types.UID("uid-of-" + name), Execution: 1}
	return api.Run{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: key.UID()},
		Object:     api.RunObject{Kind: "JobSet", Name: name, UID: key.Object, Execution: key.Execution}, State: api.RunCompleted,
		EndTime: metav1.NewMicroTime(now.Add(-time.Duration(minutes) * time.Minute)),
		Details: &api.RunDetails{Spec: runtime.RawExtension{Raw: []byte(`{}`)}},
	}
}

func newStorage(store archive.Store) *Storage {
	return New(provider.Host{Runs: store, Now: func() time.Time { return now }})
}

// in returns the context of a request in a namespace.
func in(ctx context.Context, namespace string) context.Context {
	return request.WithNamespace(ctx, namespace)
}

// requests are the requests that a client can send, by their verbs.
func requests(s *Storage) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"get": func(ctx context.Context) error {
			_, err := s.Get(ctx, "a", &metav1.GetOptions{})
			return err
		},
		"list": func(ctx context.Context) error {
			_, err := s.List(ctx, &internalversion.ListOptions{})
			return err
		},
		"delete": func(ctx context.Context) error {
			_, _, err := s.Delete(ctx, "a", rest.ValidateAllObjectFunc, &metav1.DeleteOptions{})
			return err
		},
	}
}

func TestErrorsOfTheStore(t *testing.T) {
	const away = "the archive database does not answer: try again later; the log of jobset-apiserver has the cause"
	over, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(-time.Hour))
	cancel()
	for name, tc := range map[string]struct {
		ctx    context.Context
		store  archive.Store
		err    error
		reason metav1.StatusReason
		want   string
	}{
		"the archive is off": {
			reason: metav1.StatusReasonServiceUnavailable, want: "the archive of runs is off in this server: switch it on with --archive-database",
		},
		"the database is away": {
			store: archivetest.New(), err: errors.New("dial postgres://admin:secret@db"), reason: metav1.StatusReasonServiceUnavailable, want: away,
		},
		"the database is slow": {store: archivetest.New(), err: context.DeadlineExceeded, reason: metav1.StatusReasonServiceUnavailable, want: away},
		"the time of the request is over": {
			ctx: late, store: archivetest.New(), err: context.DeadlineExceeded, reason: metav1.StatusReasonServiceUnavailable, want: away,
		},
		"the client has left": {
			ctx: over, store: archivetest.New(), err: context.Canceled, reason: metav1.StatusReasonTimeout,
			want: "Timeout: the request ended before the archive database had answered",
		},
	} {
		s := newStorage(tc.store)
		if tc.ctx == nil {
			tc.ctx = t.Context()
		}
		if tc.err != nil {
			tc.store.(*archivetest.Store).Fail(fmt.Errorf("querying: %w", tc.err))
		}
		for verb, send := range requests(s) {
			if err := send(in(tc.ctx, "ns")); apierrors.ReasonForError(err) != tc.reason || err.Error() != tc.want {
				t.Errorf("%s: %s returns %v (%s), want %s", name, verb, err, apierrors.ReasonForError(err), tc.want)
			}
		}
	}
}

func TestCausesAreLoggedOnceAMinute(t *testing.T) {
	logger := ktesting.NewLogger(t, ktesting.NewConfig(ktesting.BufferLogs(true)))
	ctx, clock, store := klog.NewContext(t.Context(), logger), now, archivetest.New()
	s := New(provider.Host{Runs: store, Now: func() time.Time { return clock }})
	ask := func(cause string, after time.Duration) {
		clock = clock.Add(after)
		store.Fail(errors.New(cause))
		if _, err := s.List(ctx, nil); !apierrors.IsServiceUnavailable(err) {
			t.Errorf("%s: %v", cause, err)
		}
	}
	ask("first", 0)
	ask("second", time.Minute-1)
	ask("third", 1)
	store.Fail(archive.ErrGone)
	_, _ = s.List(ctx, nil)
	logged := logger.GetSink().(ktesting.Underlier).GetBuffer().String()
	for cause, want := range map[string]int{"first": 1, "second": 0, "third": 1, archive.ErrGone.Error(): 0} {
		if got := strings.Count(logged, cause); got != want {
			t.Errorf("%q is logged %d times, want %d", cause, got, want)
		}
	}
}

func TestGet(t *testing.T) {
	s := newStorage(archivetest.New(testRun("a", 1)))
	got, err := s.Get(in(t.Context(), "ns"), "a", &metav1.GetOptions{ResourceVersion: "0"})
	if err != nil || got.(*api.Run).Name != "a" || got.(*api.Run).Details == nil {
		t.Errorf("got %v, %v", got, err)
	}
	for name, at := range map[string][2]string{
		"another name": {"ns", "b"}, "another namespace": {"other", "a"}, "a name that cannot be": {"ns", "a\x00"}, "a long name": {"ns", strings.Repeat("a", 254)},
	} {
		if _, err := s.Get(in(t.Context(), at[0]), at[1], nil); !apierrors.IsNotFound(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err = s.Get(in(t.Context(), "ns"), "b", nil)
	if want := `runs.archive.jobset-apiserver.io "b" not found`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
	_, err = s.Get(in(t.Context(), "ns"), "a", &metav1.GetOptions{ResourceVersion: "5"})
	if want := `resourceVersion: must be empty or 0, because runs have no resource version, not "5"`; !apierrors.IsBadRequest(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// names returns the names in a list.
func names(list runtime.Object) (out []string) {
	for _, run := range list.(*api.RunList).Items {
		out = append(out, run.Name)
	}
	return out
}

func TestPages(t *testing.T) {
	s := newStorage(archivetest.New(testRun("old", 3), testRun("new", 1), testRun("middle", 2)))
	first, err := s.List(in(t.Context(), "ns"), asked{limit: 2}.options(t))
	if err != nil {
		t.Fatal(err)
	}
	token := first.(*api.RunList).Continue
	if diff := cmp.Diff([]string{"new", "middle"}, names(first)); diff != "" || token == "" {
		t.Errorf("the first page, which continues at %q (-want +got):\n%s", token, diff)
	}
	if list := first.(*api.RunList); list.ResourceVersion != "" || list.RemainingItemCount != nil || list.Items[0].Details != nil {
		t.Errorf("a list must have no version, no count and no details: %+v", list)
	}
	second, err := s.List(in(t.Context(), "ns"), asked{limit: 2, token: token}.options(t))
	if diff := cmp.Diff([]string{"old"}, names(second)); err != nil || diff != "" || second.(*api.RunList).Continue != "" {
		t.Errorf("the second page: %v (-want +got):\n%s", err, diff)
	}
	const want = "the continue token is damaged, or it belongs to a list with other selectors: list again without continue, and keep namespace and " +
		"selectors for the other pages"
	for name, other := range map[string]asked{"another query": {token: token, fields: "state=Completed"}, "a damaged token": {token: "x"}} {
		if _, err := s.List(in(t.Context(), "ns"), other.options(t)); !apierrors.IsResourceExpired(err) || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
}

// A client that asks for all gets a page, with a token for the next one.
func TestListsAreBounded(t *testing.T) {
	runs := make([]api.Run, archive.MaxLimit+1)
	for i := range runs {
		runs[i] = testRun(fmt.Sprintf("run-%d", i), i)
	}
	s := newStorage(archivetest.New(runs...))
	for name, limit := range map[string]int64{"all": 0, "too many": archive.MaxLimit + 1} {
		list, err := s.List(in(t.Context(), ""), asked{limit: limit}.options(t))
		if err != nil || len(list.(*api.RunList).Items) != archive.MaxLimit || list.(*api.RunList).Continue == "" {
			t.Errorf("%s: %d runs: %v", name, len(names(list)), err)
		}
	}
}

// Lists that nothing can match are empty, not null, and cost no query.
func TestEmptyLists(t *testing.T) {
	store := archivetest.New(testRun("a", 1))
	list, err := newStorage(store).List(in(t.Context(), "ns"), asked{fields: "metadata.namespace=other"}.options(t))
	if err != nil || list.(*api.RunList).Items == nil || len(names(list)) != 0 || len(store.Queries()) != 0 {
		t.Errorf("got %v, %v after the queries %v", list, err, store.Queries())
	}
	list, err = newStorage(store).List(in(t.Context(), "other"), nil)
	if err != nil || list.(*api.RunList).Items == nil || len(names(list)) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
}

func TestDelete(t *testing.T) {
	uid := testRun("a", 1).UID
	refuse := func(context.Context, runtime.Object) error { return errors.New("admission refuses it") }
	for name, tc := range map[string]struct {
		name     string
		options  *metav1.DeleteOptions
		validate rest.ValidateObjectFunc
		kept     bool
		want     string
	}{
		"a run":                     {name: "a"},
		"with the UID":              {name: "a", options: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}}},
		"with a policy":             {name: "a", options: &metav1.DeleteOptions{PropagationPolicy: ptr.To(metav1.DeletePropagationForeground)}},
		"a run that does not exist": {name: "b", kept: true, want: `runs.archive.jobset-apiserver.io "b" not found`},
		"with another UID": {
			name: "a", options: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: ptr.To[types.UID]("other")}}, kept: true,
			want: fmt.Sprintf(`Operation cannot be fulfilled on runs.archive.jobset-apiserver.io "a": the UID in the precondition must be %s, not other`, uid),
		},
		"with a version": {
			name: "a", options: &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: ptr.To("5")}}, kept: true,
			want: `Operation cannot be fulfilled on runs.archive.jobset-apiserver.io "a": the resource version in the precondition must be empty, ` +
				`because runs have none, not "5"`,
		},
		"a dry run":                 {name: "a", options: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, kept: true},
		"a run that must be kept":   {name: "a", validate: refuse, kept: true, want: "admission refuses it"},
		"a dry run that is refused": {name: "a", options: &metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}}, validate: refuse, kept: true, want: "admission refuses it"},
	} {
		store := archivetest.New(testRun("a", 1))
		got, immediately, err := newStorage(store).Delete(in(t.Context(), "ns"), tc.name, tc.validate, tc.options)
		if fmt.Sprint(err) != tc.want && (err != nil || tc.want != "") {
			t.Errorf("%s: got %v, want %q", name, err, tc.want)
		}
		want := runtime.Object(&metav1.Status{Status: metav1.StatusSuccess, Details: &metav1.StatusDetails{
			Name: "a", Group: "archive.jobset-apiserver.io", Kind: "runs", UID: uid,
		}})
		if diff := cmp.Diff(want, got); err == nil && (diff != "" || !immediately) {
			t.Errorf("%s: deleted immediately: %t (-want +got):\n%s", name, immediately, diff)
		}
		if usage, _ := store.Usage(t.Context()); (usage.Runs == 1) != tc.kept {
			t.Errorf("%s: the run is kept: %t, want %t", name, usage.Runs == 1, tc.kept)
		}
	}
}

// TestDeleteSparesAnotherRun: the run that admission has seen is the one that is deleted.
func TestDeleteSparesAnotherRun(t *testing.T) {
	first, second := testRun("a", 1), testRun("a", 1)
	second.Object.Execution = 2
	second.UID = archive.KeyOf(&second).UID()
	store := archivetest.New(first)
	_, _, err := newStorage(store).Delete(in(t.Context(), "ns"), "a", func(ctx context.Context, object runtime.Object) error {
		if object.(*api.Run).UID != first.UID || object.(*api.Run).Details == nil {
			t.Errorf("admission gets %v", object)
		}
		_, err := store.Delete(ctx, "ns", "a", first.UID)
		return errors.Join(err, store.Put(ctx, []api.Run{second}))
	}, nil)
	if usage, _ := store.Usage(t.Context()); !apierrors.IsNotFound(err) || usage.Runs != 1 {
		t.Errorf("%d runs are left: %v", usage.Runs, err)
	}
}
