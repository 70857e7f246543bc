// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// large is a question about a pod of about 1.6 MB.
func large(shape string) []byte {
	return review(func(request map[string]any) {
		pod := request["object"].(map[string]any)
		container := pod["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)
		switch shape {
		case "many variables":
			var env []any
			for i := range 19_000 {
				env = append(env, map[string]any{"name": fmt.Sprint("V", i), "value": strings.Repeat("x", 55)})
			}
			container["env"] = env
		case "many annotations":
			annotations := map[string]any{}
			for i := range 19_000 {
				annotations[fmt.Sprint("a", i)] = strings.Repeat("x", 70)
			}
			pod["metadata"].(map[string]any)["annotations"] = annotations
		case "a long variable":
			container["env"] = []any{map[string]any{"name": "V", "value": strings.Repeat("x", 1_600_000)}}
		}
	})
}

// BenchmarkAnswer answers questions about pods of different sizes.
func BenchmarkAnswer(b *testing.B) {
	for _, shape := range []string{"small", "many variables", "many annotations", "a long variable"} {
		body := large(shape)
		b.Run(fmt.Sprintf("%s/%d_bytes", strings.ReplaceAll(shape, " ", "_"), len(body)), func(b *testing.B) {
			h := newHandler(Callers{}, Webhook{Path: path, Mutate: labels})
			b.ReportAllocs()
			for b.Loop() {
				if _, _, err := h.complete(b.Context(), bytes.Clone(body)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
