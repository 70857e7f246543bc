// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package archivesql

import (
	"encoding/base64"
	"encoding/binary"
	"slices"

	api "github.com/jobset-apiserver/jobset-apiserver/pkg/archive"
)

// position is where a run is in lists, which are sorted by end and then by the number of the row, both descending.
type position struct {
	ended, run int64
}

// first is before the first run of a list.
var first = position{ended: endless, run: endless}

// earlier returns the position that comes later in a list.
func earlier(a, b position) position {
	if a.compare(b) < 0 {
		return a
	}
	return b
}

func (p position) compare(q position) int {
	switch {
	case p.ended < q.ended || p.ended == q.ended && p.run < q.run:
		return -1
	case p == q:
		return 0
	}
	return 1
}

const (
	// tokenVersion is the first byte of a token.
	tokenVersion = 1
	tokenSize    = 1 + hashSize + 8 + 8
)

// tokenAt returns the token with which a query continues after a position.
func tokenAt(query api.Query, p position) string {
	token := append(make([]byte, 0, tokenSize), tokenVersion)
	token = append(token, digestQuery(query)...)
	token = binary.BigEndian.AppendUint64(token, uint64(p.ended))
	token = binary.BigEndian.AppendUint64(token, uint64(p.run))
	return base64.RawURLEncoding.EncodeToString(token)
}

// positionOf returns the position after which the query continues, or ErrGone.
func positionOf(query api.Query) (position, error) {
	if query.Continue == "" {
		return first, nil
	}
	if len(query.Continue) != base64.RawURLEncoding.EncodedLen(tokenSize) {
		return position{}, api.ErrGone
	}
	token, err := base64.RawURLEncoding.DecodeString(query.Continue)
	if err != nil || token[0] != tokenVersion || string(token[1:1+hashSize]) != string(digestQuery(query)) {
		return position{}, api.ErrGone
	}
	numbers := token[1+hashSize:]
	return position{ended: int64(binary.BigEndian.Uint64(numbers)), run: int64(binary.BigEndian.Uint64(numbers[8:]))}, nil
}

// digestQuery returns a hash of what a query selects. Neither the limit nor the order of its requirements changes it.
func digestQuery(query api.Query) []byte {
	var requirements []string
	if query.Labels != nil {
		list, selectable := query.Labels.Requirements()
		if !selectable {
			requirements = append(requirements, "nothing")
		}
		for i := range list {
			parts := append([]string{"label", list[i].Key(), string(list[i].Operator())}, list[i].Values().List()...)
			requirements = append(requirements, string(digest(parts)))
		}
	}
	for _, field := range query.Fields {
		operator := "="
		if field.Not {
			operator = "!="
		}
		requirements = append(requirements, string(digest([]string{"field", string(field.Field), operator, field.Value})))
	}
	slices.Sort(requirements)
	return digest(append([]string{"query", query.Namespace}, requirements...))
}
