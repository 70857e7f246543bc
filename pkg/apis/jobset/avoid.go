// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package jobset

import (
	"fmt"
	"time"
)

// MaxAvoidTime is the longest time for which pods keep off a node.
const MaxAvoidTime = 30 * 24 * time.Hour

// AvoidTime parses the value of AvoidFailedNodesKey: for how long pods keep off a node on which an attempt failed, 0 for not at all.
func AvoidTime(value string) (time.Duration, error) {
	const examples = `from 0s, for not at all, to 720h, such as "1h" or "90m"`
	switch d, err := time.ParseDuration(value); {
	case err != nil:
		return 0, fmt.Errorf("must be a duration %s", examples)
	case d < 0 || d > MaxAvoidTime:
		return 0, fmt.Errorf("must be %s", examples)
	default:
		return d, nil
	}
}
