// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"net/http"
	"strings"
)

// The functions below wrap the transport of a client so that its watch has a defect which a simulation must find.

func isDiscovery(r *http.Request) bool { return strings.Count(r.URL.Path, "/") == 3 }

func isWatch(r *http.Request) bool { return r.URL.Query().Get("watch") != "" }

// DiscoveryAnswers answers so when discovery says that the API is absent.
func DiscoveryAnswers(code int) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return RoundTripper(func(r *http.Request) (*http.Response, error) {
			response, err := next.RoundTrip(r)
			if err == nil && isDiscovery(r) && response.StatusCode == http.StatusNotFound {
				return newRefusal(code), nil
			}
			return response, err
		})
	}
}

// DiscoveryRemembers answers what discovery has once said of an API that was served.
func DiscoveryRemembers(next http.RoundTripper) http.RoundTripper {
	var known recorded
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		switch {
		case err != nil || !isDiscovery(r):
		case response.StatusCode == http.StatusOK:
			known.record(response)
		case known.known():
			return known.answer(), nil
		}
		return response, err
	})
}

// QuietFailures gives out a watch that shows nothing instead of one that failed.
func QuietFailures(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		response, err := next.RoundTrip(r)
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" && (err != nil || response.StatusCode != http.StatusOK) && r.Context().Err() == nil {
			return newSilence(r.Context()), nil
		}
		return response, err
	})
}

// LaterVersions begins watches with a version that comes later.
func LaterVersions(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" {
			r = r.Clone(r.Context())
			query := r.URL.Query()
			query.Set("resourceVersion", "1000000")
			r.URL.RawQuery = query.Encode()
		}
		return next.RoundTrip(r)
	})
}

// ExpiringVersions answers that the version of a watch has expired.
func ExpiringVersions(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		if isWatch(r) && r.URL.Query().Get("sendInitialEvents") == "" {
			return newRefusal(http.StatusGone), nil
		}
		return next.RoundTrip(r)
	})
}

// Insistent asks discovery more often than it is asked to.
func Insistent(next http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		for range 3 {
			if isDiscovery(r) {
				if response, err := next.RoundTrip(r); err == nil {
					_ = response.Body.Close()
				}
			}
		}
		return next.RoundTrip(r)
	})
}
