// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package list

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/client-go/rest"

	jobsetv1alpha2 "github.com/jobset-apiserver/jobset-apiserver/pkg/apis/jobset/v1alpha2"
	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// answer is what the server sends: one object for a list, several lines for a watch.
type answer struct {
	code    int
	objects []any
}

// server sends its answers in their order, and keeps the requests.
type server struct {
	*httptest.Server
	answers []answer
	got     []string
	// done is called when there is no answer left.
	done func()
}

func newServer(t *testing.T, answers ...answer) *server {
	s := &server{answers: answers, done: func() { t.Error("a request too many") }}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kind := "objects"
		if strings.Contains(r.Header.Get("Accept"), "as=Table") {
			kind = "table"
		}
		query := r.URL.Query()
		query.Del("allowWatchBookmarks")
		s.got = append(s.got, fmt.Sprintf("%s %s?%s", kind, strings.TrimPrefix(r.URL.Path, "/apis/jobset.x-k8s.io/v1alpha2/"), query.Encode()))
		if len(s.answers) == 0 {
			s.done()
			return
		}
		next := s.answers[0]
		s.answers = s.answers[1:]
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(next.code)
		for _, object := range next.objects {
			if err := json.NewEncoder(w).Encode(object); err != nil {
				t.Error(err)
			}
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// inMemory makes clients call the server without a connection, which a bubble of synctest cannot have.
func (s *server) inMemory(config *rest.Config) *rest.Config {
	config.Transport = called{s.Config.Handler}
	return config
}

// called is a server whose answers are complete once its handler returns.
type called struct{ http.Handler }

func (c called) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	c.ServeHTTP(w, r)
	return w.Result(), nil
}

// factory returns the factory of a command that asks the server, and what it writes.
func (s *server) factory() (f *cli.Factory, out, errOut fmt.Stringer) {
	streams, _, stdout, stderr := genericiooptions.NewTestIOStreams()
	f = cli.NewFactory(streams)
	*f.Flags.APIServer, *f.Flags.Namespace = s.URL, "ns"
	return f, stdout, stderr
}

// wide are the columns of our server.
var wide = []metav1.TableColumnDefinition{{Name: "Name"}, {Name: "Restarts"}, {Name: "Phase"}, {Name: "Ready"}, {Name: "Attempt"}, {Name: "Reason"}}

var created = metav1.NewTime(time.Now().Add(-90 * time.Minute).Truncate(time.Second))

// set is a row of the server: its name, with the namespace before a slash, and phase, ready and attempt.
func set(name, phase, ready, attempt string, change ...func(*metav1.ObjectMeta)) metav1.TableRow {
	object := metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, CreationTimestamp: created}}
	if namespace, rest, found := strings.Cut(name, "/"); found {
		object.Namespace, object.Name = namespace, rest
	}
	object.UID, object.ResourceVersion = types.UID("uid-"+object.Namespace+object.Name), "5"
	for _, f := range change {
		f(&object.ObjectMeta)
	}
	content, err := json.Marshal(object)
	if err != nil {
		panic(err)
	}
	return metav1.TableRow{Cells: []any{object.Name, "0", phase, ready, attempt, nil}, Object: runtime.RawExtension{Raw: content}}
}

func inQueue(name string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.Labels = map[string]string{jobsetv1alpha2.QueueNameKey: name} }
}

func version(v string) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.ResourceVersion = v }
}

func ago(d time.Duration) func(*metav1.ObjectMeta) {
	return func(m *metav1.ObjectMeta) { m.CreationTimestamp = metav1.NewTime(created.Add(-d)) }
}

func tableOf(columns []metav1.TableColumnDefinition, next string, rows ...metav1.TableRow) metav1.Table {
	return metav1.Table{
		TypeMeta: metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "Table"}, ListMeta: metav1.ListMeta{ResourceVersion: "9", Continue: next},
		ColumnDefinitions: columns, Rows: rows,
	}
}

func page(next string, rows ...metav1.TableRow) answer {
	return answer{http.StatusOK, []any{tableOf(wide, next, rows...)}}
}

func failure(err *apierrors.StatusError) answer {
	status := err.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return answer{int(status.Code), []any{status}}
}

// changes is the answer to a watch: words like ADDED with the row of each.
func changes(pairs ...any) answer {
	a := answer{code: http.StatusOK}
	for i := 0; i < len(pairs); i += 2 {
		object := pairs[i+1]
		if row, is := object.(metav1.TableRow); is {
			object = tableOf(nil, "", row) // only the first event of a stream has columns
		}
		a.objects = append(a.objects, map[string]any{"type": pairs[i], "object": object})
	}
	return a
}
