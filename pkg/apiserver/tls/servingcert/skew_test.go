// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package servingcert

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSkewIsMeasured asks servers whose clocks differ from that of the test.
func TestSkewIsMeasured(t *testing.T) {
	for _, ahead := range []time.Duration{0, 3 * time.Hour, -3 * time.Hour} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Date", time.Now().Add(ahead).UTC().Format(http.TimeFormat))
		}))
		defer server.Close()
		var skew Skew
		if got := skew.Last(); got != 0 {
			t.Errorf("%s before the first answer", got)
		}
		response, err := (&http.Client{Transport: skew.Wrap(http.DefaultTransport)}).Get(server.URL)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if off := skew.Last() - ahead; off.Abs() > 2*time.Second {
			t.Errorf("measured %s, must be %s", skew.Last(), ahead)
		}
	}
}
