// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"
)

// namespaceWith is a namespace with objects of these kinds under the name "a"; others may not be read, or are not served.
func namespaceWith(t *testing.T, kinds, unreadable, absent []Kind, parts int) *Clients {
	t.Helper()
	scheme := metadatafake.NewTestScheme()
	if err := metav1.AddMetaToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	var objects []runtime.Object
	for _, k := range kinds {
		objects = append(objects, &metav1.PartialObjectMetadata{
			TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Title}, ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"},
		})
	}
	for i := range parts {
		k := LeaderWorkerSet
		objects = append(objects, &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: k.GroupVersion.String(), Kind: k.Title},
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: fmt.Sprintf("a-%d", i), Labels: map[string]string{"disaggregatedset.x-k8s.io/name": "a"}}})
	}
	client := metadatafake.NewSimpleMetadataClient(scheme, objects...)
	for _, k := range unreadable {
		client.PrependReactor("get", k.Names[1], func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewForbidden(k.Resource().GroupResource(), "a", errors.New("no"))
		})
	}
	for _, k := range absent {
		client.PrependReactor("get", k.Names[1], func(clienttesting.Action) (bool, runtime.Object, error) {
			return true, nil, apierrors.NewGenericServerResponse(http.StatusNotFound, "get", k.Resource().GroupResource(), "a", "404 page not found", 0, true)
		})
	}
	return &Clients{Namespace: "ns", Metadata: client}
}

// TestNameMeansTheSameInEveryCommand looks a name up for commands that read and commands that change, and which take all kinds or some.
func TestNameMeansTheSameInEveryCommand(t *testing.T) {
	take := func(kinds ...Kind) (out []For[bool]) {
		for _, k := range kinds {
			out = append(out, For[bool]{Kind: k})
		}
		return out
	}
	const missing = `NAME: "a" not found: the namespace ns has no JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet of this name; ` + "`kubectl jobset list` lists the names"
	// result is the kind that is found, or the error.
	type result struct{ Read, Note, Change string }
	for name, tc := range map[string]struct {
		takes            []For[bool]
		arg              string
		kinds, forbidden []Kind
		absent           []Kind
		parts            int
		want             result
	}{
		"a JobSet":              {takes: take(Kinds...), kinds: []Kind{JobSet}, want: result{Read: "JobSet", Change: "JobSet"}},
		"a LeaderWorkerSet":     {takes: take(Kinds...), kinds: []Kind{LeaderWorkerSet}, want: result{Read: "LeaderWorkerSet", Change: "LeaderWorkerSet"}},
		"of a command for some": {takes: take(LeaderWorkerSet), kinds: []Kind{LeaderWorkerSet}, want: result{Read: "LeaderWorkerSet", Change: "LeaderWorkerSet"}},
		"of two kinds": {takes: take(Kinds...), kinds: []Kind{JobSet, LeaderWorkerSet}, want: result{
			Read: "JobSet", Note: "note: a is also the name of lws/a; this is js/a\n", Change: "NAME: a is the name of several objects; give one of js/a, lws/a",
		}},
		"of two kinds, one of which the command takes": {takes: take(LeaderWorkerSet), kinds: []Kind{JobSet, LeaderWorkerSet}, want: result{
			Read: "NAME: a is the name of several objects; give one of js/a, lws/a", Change: "NAME: a is the name of several objects; give one of js/a, lws/a",
		}},
		"of a kind that the command does not take": {takes: take(JobSet, LeaderWorkerSet), kinds: []Kind{SequentialJob}, want: result{
			Read: "NAME: a is a SequentialJob; must be a JobSet or LeaderWorkerSet", Change: "NAME: a is a SequentialJob; must be a JobSet or LeaderWorkerSet",
		}},
		"a kind is given": {takes: take(Kinds...), arg: "lws/a", kinds: []Kind{JobSet}, want: result{Read: "LeaderWorkerSet", Change: "LeaderWorkerSet"}},
		"of none":         {takes: take(SequentialJob, LeaderWorkerSet), want: result{Read: missing, Change: missing}},
		"a misspelled name": {takes: take(JobSet), arg: "aa", kinds: []Kind{LeaderWorkerSet, DisaggregatedSet}, want: result{
			Read:   `NAME: "aa" not found: the namespace ns has no JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet of this name; similar names: lws/a`,
			Change: `NAME: "aa" not found: the namespace ns has no JobSet, SequentialJob, LeaderWorkerSet or DisaggregatedSet of this name; similar names: lws/a`,
		}},
		"of none, and one is not served": {takes: take(JobSet), absent: []Kind{DisaggregatedSet}, want: result{
			Read:   `NAME: "a" not found: the namespace ns has no JobSet, SequentialJob or LeaderWorkerSet of this name; ` + "`kubectl jobset list` lists the names",
			Change: `NAME: "a" not found: the namespace ns has no JobSet, SequentialJob or LeaderWorkerSet of this name; ` + "`kubectl jobset list` lists the names",
		}},
		"a DisaggregatedSet with parts": {takes: take(JobSet, LeaderWorkerSet), kinds: []Kind{DisaggregatedSet}, parts: 8, want: result{
			Read:   "NAME: a is a DisaggregatedSet; must be a JobSet or LeaderWorkerSet; its parts are lws/a-0, lws/a-1, lws/a-2, lws/a-3, lws/a-4, lws/a-5 and 2 more",
			Change: "NAME: a is a DisaggregatedSet; must be a JobSet or LeaderWorkerSet; its parts are lws/a-0, lws/a-1, lws/a-2, lws/a-3, lws/a-4, lws/a-5 and 2 more",
		}},
		"nothing may be read":              {takes: take(Kinds...), forbidden: Kinds, want: result{Read: "JobSet", Change: "JobSet"}},
		"of none, and one may not be read": {takes: take(Kinds...), forbidden: []Kind{SequentialJob}, want: result{Read: "SequentialJob", Change: "SequentialJob"}},
		"of none, one may not be read and an earlier one is not served": {
			takes: take(Kinds...), forbidden: []Kind{SequentialJob}, absent: []Kind{JobSet}, want: result{Read: "JobSet", Change: "JobSet"},
		},
		"of none, and the first is not served": {takes: take(Kinds...), absent: []Kind{JobSet}, want: result{Read: "JobSet", Change: "JobSet"}},
		"of another one, and the first is not served": {
			takes: take(Kinds...), kinds: []Kind{SequentialJob}, absent: []Kind{JobSet}, want: result{Read: "SequentialJob", Change: "SequentialJob"},
		},
		"of one, and another one may not be read": {takes: take(Kinds...), kinds: []Kind{LeaderWorkerSet}, forbidden: []Kind{JobSet}, want: result{
			Read:   "LeaderWorkerSet",
			Change: `NAME: lws/a exists, and whether js/a does could not be found out: jobsets.jobset.x-k8s.io "a" is forbidden: no; give the one that you mean`,
		}},
		"of the first, and later ones may not be read": {takes: take(Kinds...), kinds: []Kind{JobSet}, forbidden: []Kind{SequentialJob, LeaderWorkerSet}, want: result{Read: "JobSet", Change: "JobSet"}},
		"of one, and one that the command does not take may not be read": {
			takes: take(JobSet), kinds: []Kind{JobSet}, forbidden: []Kind{DisaggregatedSet}, want: result{Read: "JobSet", Change: "JobSet"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.arg == "" {
				tc.arg = "a"
			}
			arg, err := Parse(tc.takes, []string{tc.arg})
			if err != nil {
				t.Fatal(err)
			}
			var errOut bytes.Buffer
			f := NewFactory(genericiooptions.IOStreams{ErrOut: &errOut})
			f.clients = namespaceWith(t, tc.kinds, tc.forbidden, tc.absent, tc.parts)
			f.once.Do(func() {})
			say := func(kind For[bool], err error) string {
				if err != nil {
					return err.Error()
				}
				return kind.Title
			}
			got := result{Change: say(FindToChange(context.Background(), f.clients, arg)), Read: say(FindToRead(context.Background(), f, arg))}
			got.Note = errOut.String()
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}
