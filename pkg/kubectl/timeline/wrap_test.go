// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package timeline

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jobset-apiserver/jobset-apiserver/pkg/kubectl/cli"
	"github.com/jobset-apiserver/jobset-apiserver/test/golden"
)

// TestNothingIsCut has all that a table says, at each width: what failed first with its exit code, who ended an attempt, and why.
func TestNothingIsCut(t *testing.T) {
	timelines := map[string]View{
		"eventful":                Build(eventful(), after(12000)),
		"leaderworkerset-failing": failing().timeline(90000),
		"sequentialjob-failed":    buildSequence(failedSequence(), after(1800)),
	}
	for name, view := range timelines {
		whole := below(text(view, screen{zone: time.UTC}))
		for _, width := range []int{40, 60, 80, 100} {
			got := text(view, screen{Terminal: cli.Terminal{Width: width}, zone: time.UTC})
			if missing := missingWords(whole, below(got)); len(missing) > 0 || strings.Contains(got, "…") {
				t.Errorf("%s at %d columns lacks %q:\n%s", name, width, missing, got)
			}
			if width >= 60 {
				golden.Compare(t, fmt.Sprintf("%s-%d.txt", name, width), got)
			}
		}
	}
}

// below is what stands below the chart.
func below(text string) string {
	parts := strings.SplitN(text, "\n\n", 3)
	return parts[len(parts)-1]
}

// missingWords are the words of a text that another one does not have as often.
func missingWords(whole, got string) (missing []string) {
	has := map[string]int{}
	for word := range strings.FieldsSeq(got) {
		has[word]++
	}
	for word := range strings.FieldsSeq(whole) {
		if word == strings.ToUpper(word) && strings.ToLower(word) != word {
			continue // a title of a column, which is a label below the row where there is little room
		}
		if has[word]--; has[word] < 0 {
			missing = append(missing, word)
		}
	}
	return missing
}
