// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package restartagent

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// restoredStore has one set. It is away when the first watch begins, and comes back as it was before. Then it answers as the API server
// does: a watch from a version of the future is silent.
type restoredStore struct{ restored bool }

func (s *restoredStore) RoundTrip(req *http.Request) (*http.Response, error) {
	query := req.URL.Query()
	switch {
	case query.Get("sendInitialEvents") != "":
		return answer(http.StatusUnprocessableEntity, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Invalid","code":422}`), nil
	case query.Get("watch") == "" && s.restored:
		return answer(http.StatusOK, sets(50, 3)), nil
	case query.Get("watch") == "":
		return answer(http.StatusOK, sets(100, 7)), nil
	case !s.restored:
		s.restored = true
		return nil, syscall.ECONNREFUSED
	}
	body, end := io.Pipe()
	go func() {
		<-req.Context().Done()
		end.Close()
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: body}, nil
}

func answer(code int, body string) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body))}
}

func sets(version, current int) string {
	return fmt.Sprintf(`{"kind":"JobSetList","apiVersion":"jobset.x-k8s.io/v1alpha2","metadata":{"resourceVersion":"%d"},"items":[
		{"metadata":{"name":"a","namespace":"default","resourceVersion":"%d"},"status":{"currentInPlaceRestartAttempt":%d}}]}`, version, version, current)
}

// TestAgentSeesRestoredStore restores the store of the sets to a state in which their attempts were lower.
func TestAgentSeesRestoredStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newClient(&Config{Namespace: "default", JobSet: "a"}, &rest.Config{Host: "https://main", Transport: &restoredStore{}})
		if err != nil {
			t.Fatal(err)
		}
		var seen []int32
		go c.watch(t.Context(), func(set *JobSet) { seen = append(seen, *set.Status.Current) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(seen) == 0 || seen[0] != 7 || seen[len(seen)-1] != 3 {
			t.Errorf("the agent saw the attempts %v, want 7 and then 3", seen)
		}
	})
}
