// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shortage reads the message with which a placement says why Jobs have no domain. Programs that have only the
// condition or the event of a set, such as the kubectl plugin, learn from it what is in the way. placement.Shortage
// writes the message; a test keeps both in step.
package shortage

import (
	"regexp"
	"strconv"
	"strings"
)

// Shortage is what a message says. Each domain is counted once.
type Shortage struct {
	// Group is the replicatedJob whose Jobs have no domain, and Topology the label key of nodes whose values are the domains.
	Group, Topology string
	// Jobs is how many Jobs of the group ask for a domain, Others how many of other groups do at the same time, and Pods how many pods each
	// of the group has.
	Jobs, Others, Pods int
	// Domains is how many domains exist. Of them, Usable are free and have room, Taken have Jobs that others placed there, Lacking have too
	// little room, and Unsuitable have no node on which the pods may run.
	Domains, Usable, Taken, Lacking, Unsuitable int
	// TakenBy are the sets that take most domains, as "namespace/name", at most three of them.
	TakenBy []Taker
	// Closest is the domain with most room among those that lack some; empty if none does.
	Closest string
}

// Taker is a set that takes domains.
type Taker struct {
	Set     string
	Domains int
}

var (
	sentence = regexp.MustCompile(`^(\d+) jobs? of replicatedJob "([^"]*)", with (\d+) pods?, (?:needs|each need) a domain of "([^"]*)"` +
		`(?:, as do(?:es)? (\d+) jobs? of other replicatedJobs)?: (?:no node has that label|of (\d+) domains?, (.*))`)
	usable     = regexp.MustCompile(`^(\d+) (?:is|are) free and ha(?:s|ve) room`)
	taken      = regexp.MustCompile(`(?:^|, )(\d+) (?:is|are) taken by jobs \(([^)]*)`)
	lacking    = regexp.MustCompile(`(?:^|, )(\d+) lacks? room \(`)
	unsuitable = regexp.MustCompile(`(?:^|, )(\d+) ha(?:s|ve) no node for the pods \(`)
	closest    = regexp.MustCompile(`; "([^"]*)" comes closest, `)
)

// Parse reads a message. It returns false for a text that is none. What was cut off from the end of a long message is absent.
func Parse(message string) (Shortage, bool) {
	m := sentence.FindStringSubmatch(message)
	if m == nil {
		return Shortage{}, false
	}
	s := Shortage{Group: m[2], Topology: m[4], Jobs: number(m[1]), Others: number(m[5]), Pods: number(m[3]), Domains: number(m[6])}
	parts := m[7]
	s.Usable, s.Lacking, s.Unsuitable = first(usable, parts), first(lacking, parts), first(unsuitable, parts)
	if t := taken.FindStringSubmatch(parts); t != nil {
		s.Taken, s.TakenBy = number(t[1]), takers(t[2])
	}
	if c := closest.FindStringSubmatch(parts); c != nil {
		s.Closest = c[1]
	}
	return s, true
}

// takers reads "a/b: 3, c/d: 1, 2 other sets".
func takers(list string) (out []Taker) {
	for part := range strings.SplitSeq(list, ", ") {
		if set, domains, found := strings.Cut(part, ": "); found {
			out = append(out, Taker{set, number(domains)})
		}
	}
	return out
}

// first returns the number that an expression finds; 0 if it finds none.
func first(expression *regexp.Regexp, text string) int {
	if m := expression.FindStringSubmatch(text); m != nil {
		return number(m[1])
	}
	return 0
}

// number returns the value of digits; 0 if there are none, or too many.
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}
