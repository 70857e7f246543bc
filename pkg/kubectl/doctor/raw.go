// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
)

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 1 << 20

// answer is what a server says to a GET.
type answer struct {
	code int
	body []byte
	// date is the date of the clock of kube-apiserver, in whole seconds; zero if it does not say.
	date time.Time
}

// get asks kube-apiserver for a path. An error means that there is no answer.
type get func(ctx context.Context, path string) (answer, error)

// getter returns a get with the credentials of the user.
func getter(c *cli.Clients) get {
	return func(ctx context.Context, path string) (answer, error) {
		client, ok := c.Discovery.RESTClient().(*rest.RESTClient)
		if !ok {
			return answer{}, fmt.Errorf("no client for %s", path)
		}
		location := client.Get().AbsPath(path).URL()
		location.Path, location.RawQuery = splitQuery(location.Path)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, location.String(), nil)
		if err != nil {
			return answer{}, err
		}
		via := client.Client
		if via == nil {
			via = http.DefaultClient
		}
		response, err := via.Do(req)
		if err != nil {
			return answer{}, err
		}
		defer response.Body.Close()
		body, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
		date, _ := http.ParseTime(response.Header.Get("Date"))
		return answer{code: response.StatusCode, body: body, date: date}, err
	}
}

// splitQuery separates the query from a path.
func splitQuery(path string) (only, query string) {
	for i := range path {
		if path[i] == '?' {
			return path[:i], path[i+1:]
		}
	}
	return path, ""
}

// failure returns the answer as an error; nil if it is a success.
func (a answer) failure() error {
	if a.code == http.StatusOK {
		return nil
	}
	status := &apierrors.StatusError{ErrStatus: metav1.Status{Code: int32(a.code), Reason: metav1.StatusReasonUnknown}}
	if json.Unmarshal(a.body, &status.ErrStatus) != nil || status.ErrStatus.Message == "" {
		status.ErrStatus.Message = fmt.Sprintf("status %d: %s", a.code, cli.Clean(string(a.body)))
	}
	if a.code == http.StatusForbidden {
		status.ErrStatus.Reason = metav1.StatusReasonForbidden
	}
	return status
}
