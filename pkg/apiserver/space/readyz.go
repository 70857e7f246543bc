// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package space

import (
	"fmt"
	"net/http"
)

// WithReadyzLine adds a line to what /readyz?verbose says. It is no check: a server without space stays ready, because
// deletions must reach it.
func (g *Guard) WithReadyzLine(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		if _, verbose := req.URL.Query()["verbose"]; verbose && req.URL.Path == "/readyz" {
			w = &prefixed{ResponseWriter: w, line: g.line()}
		}
		next.ServeHTTP(w, req)
	})
}

func (g *Guard) line() string {
	if g.exhausted() != nil {
		return "[!]storage-space used up: etcd accepts only deletions\n"
	}
	if lack := g.low(); lack != nil {
		return fmt.Sprintf("[!]storage-space low: creations and changes of spec are refused (%s)\n", lack.reason)
	}
	if g.store == nil {
		return "[+]storage-space ok\n"
	}
	usage := g.store.Usage()
	return fmt.Sprintf("[+]storage-space ok: %d%% of the quota is in use\n", percent(usage.InUseBytes, usage.QuotaBytes))
}

// prefixed writes a line before the body.
type prefixed struct {
	http.ResponseWriter
	line string
}

// Write writes the line, once, and then the content.
func (p *prefixed) Write(content []byte) (int, error) {
	if p.line != "" {
		line := p.line
		p.line = ""
		if _, err := p.ResponseWriter.Write([]byte(line)); err != nil {
			return 0, err
		}
	}
	return p.ResponseWriter.Write(content)
}
