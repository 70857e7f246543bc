// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
)

// Answer is what a query returns.
type Answer struct {
	// Error is why it returns nothing, such as a syntax error.
	Error string `json:"error,omitempty"`
	// Series is the number of series, and Numbers the number of those whose value is a number: a quantile of no observations is none.
	Series  int `json:"series"`
	Numbers int `json:"numbers"`
	// Selectors are the selectors of the query that select no series.
	Empty []string `json:"empty,omitempty"`
}

// Rule is the state of a rule.
type Rule struct {
	Name  string `json:"name"`
	Query string `json:"query"`
	// Health is ok, err or unknown.
	Health string `json:"health"`
	Error  string `json:"error,omitempty"`
}

// handler answers /query?query=EXPRESSION, /rules and /targets.
func (s *system) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /query", func(w http.ResponseWriter, r *http.Request) { write(w, s.answer(r)) })
	mux.HandleFunc("GET /rules", func(w http.ResponseWriter, _ *http.Request) { write(w, s.states()) })
	mux.HandleFunc("GET /targets", func(w http.ResponseWriter, _ *http.Request) {
		targets := map[string]string{}
		for job, all := range s.scraper.TargetsActive() {
			for _, target := range all {
				targets[job] = string(target.Health())
				if err := target.LastError(); err != nil {
					targets[job] += ": " + err.Error()
				}
			}
		}
		write(w, targets)
	})
	return mux
}

func (s *system) answer(r *http.Request) (answer Answer) {
	text := r.FormValue("query")
	var err error
	if answer.Series, answer.Numbers, err = s.query(r, text); err != nil {
		return Answer{Error: err.Error()}
	}
	expression, err := s.parser.ParseExpr(text)
	if err != nil {
		return Answer{Error: err.Error()}
	}
	parser.Inspect(expression, func(node parser.Node, _ []parser.Node) error {
		if selector, ok := node.(*parser.VectorSelector); ok {
			// What was there a while ago counts: a series of a past moment has done its part.
			if series, _, err := s.query(r, recently(selector)); err != nil || series == 0 {
				answer.Empty = append(answer.Empty, selector.String())
			}
		}
		return nil
	})
	return answer
}

// recently returns a query for the series that the selector has selected a short time ago. They need not be as old as its offset.
func recently(selector *parser.VectorSelector) string {
	now := *selector
	now.OriginalOffset, now.OriginalOffsetExpr = 0, nil
	return "last_over_time(" + now.String() + "[10m])"
}

// query returns the number of series that a query returns now, and of those that have a number.
func (s *system) query(r *http.Request, text string) (series, numbers int, err error) {
	query, err := s.engine.NewInstantQuery(r.Context(), s.db, nil, text, time.Now())
	if err != nil {
		return 0, 0, err
	}
	defer query.Close()
	result := query.Exec(r.Context())
	if result.Err != nil {
		return 0, 0, result.Err
	}
	switch value := result.Value.(type) {
	case promql.Vector:
		for _, sample := range value {
			if sample.F == sample.F {
				numbers++
			}
		}
		return len(value), numbers, nil
	case promql.Matrix:
		return len(value), len(value), nil
	}
	return 1, 1, nil
}

func (s *system) states() (states []Rule) {
	for _, rule := range s.rules.Rules() {
		state := Rule{Name: rule.Name(), Query: rule.Query().String(), Health: string(rule.Health())}
		if err := rule.LastError(); err != nil {
			state.Error = err.Error()
		}
		states = append(states, state)
	}
	return states
}

func write(w http.ResponseWriter, answer any) {
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
