// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// dated answers with the date of a clock that differs from that of the test.
type dated time.Duration

func (d dated) RoundTrip(*http.Request) (*http.Response, error) {
	date := time.Now().Add(time.Duration(d)).UTC().Format(http.TimeFormat)
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Date": {date}}, Body: http.NoBody}, nil
}

// TestSkewIsMeasured asks servers whose clocks differ from that of the test.
func TestSkewIsMeasured(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		// The second of a date that is in the past may not be over.
		for ahead, want := range map[time.Duration]time.Duration{0: 0, 3 * time.Hour: 3 * time.Hour, -3 * time.Hour: time.Second - 3*time.Hour} {
			var skew Skew
			if got := skew.Last(); got != 0 {
				t.Errorf("%s before the first answer", got)
			}
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://main", nil)
			if err != nil {
				t.Fatal(err)
			}
			response, err := skew.Wrap(dated(ahead)).RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			if got := skew.Last(); got != want {
				t.Errorf("measured %s, must be %s", got, want)
			}
		}
	})
}
