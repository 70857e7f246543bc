// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package placement

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// tolerates is what (*corev1.Toleration).ToleratesTaint returns. That wants a logger, of which the zero value writes nothing.
func tolerates(t *corev1.Toleration, taint *corev1.Taint) bool {
	return withoutLogger(t.ToleratesTaint, taint)
}

func withoutLogger[L any](f func(L, *corev1.Taint, bool) bool, taint *corev1.Taint) bool {
	var none L
	return f(none, taint, true)
}

// suits is whether pods may run on a node.
type suits int8

const (
	suitsNever suits = iota
	// suitsLater is once the state of the node is another one.
	suitsLater
	suitsNow
)

// stateTaints begins the keys of the taints that nodes have because of their state, such as one that is not ready or cordoned.
const stateTaints = "node.kubernetes.io/"

// suitable returns for each node whether the pods of a shape may run there: by its labels, its name and its taints.
func (x *index) suitable(s *Shape) []suits {
	if known, ok := x.suits[s.constraints]; ok {
		return known
	}
	m := newMatcher(s)
	out := make([]suits, len(x.nodes))
	for i, node := range x.nodes {
		if m.matches(node) {
			out[i] = m.byTaints(node)
		}
	}
	x.suits[s.constraints] = out
	return out
}

// Suits returns whether pods of the shape may run on a node now: by its labels, its name and its taints.
func (s *Shape) Suits(node *Node) bool {
	m := newMatcher(s)
	return m.matches(node) && m.byTaints(node) == suitsNow
}

func (m *matcher) byTaints(node *Node) suits {
	out := suitsNow
	for i := range node.Taints {
		switch {
		case m.tolerates(&node.Taints[i]):
		case strings.HasPrefix(node.Taints[i].Key.String(), stateTaints):
			out = suitsLater
		default:
			return suitsNever
		}
	}
	return out
}

// matchedKeys is how many labels may decide about a node for the answer to be remembered.
const matchedKeys = 8

// matcher compares nodes with a shape. Nodes with the same values of the labels that count give the same answer.
type matcher struct {
	shape   *Shape
	scratch corev1.Node
	known   map[[matchedKeys]labelValue]bool
	taints  map[Taint]bool
}

type labelValue struct {
	value   Name
	present bool
}

func newMatcher(s *Shape) *matcher {
	return &matcher{
		shape: s, scratch: corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{}}}, known: map[[matchedKeys]labelValue]bool{},
		taints: map[Taint]bool{},
	}
}

func (m *matcher) matches(node *Node) bool {
	switch {
	case m.shape.anywhere:
		return true
	case m.shape.byName || len(m.shape.keys) > matchedKeys:
		return m.ask(node)
	}
	var key [matchedKeys]labelValue
	for i, name := range m.shape.keys {
		key[i].value, key[i].present = node.label(name)
	}
	answer, known := m.known[key]
	if !known {
		answer = m.ask(node)
		m.known[key] = answer
	}
	return answer
}

// ask compares in full. A selector that cannot be read matches nothing, as for the scheduler.
func (m *matcher) ask(node *Node) bool {
	m.scratch.Name = node.Name.String()
	clear(m.scratch.Labels)
	for _, key := range m.shape.keys {
		if value, present := node.label(key); present {
			m.scratch.Labels[key.String()] = value.String()
		}
	}
	answer, err := m.shape.affinity.Match(&m.scratch)
	return answer && err == nil
}

// untolerated returns the first taint of the node that keeps the pods away.
func (m *matcher) untolerated(node *Node) *Taint {
	for i := range node.Taints {
		if t := &node.Taints[i]; !m.tolerates(t) {
			return t
		}
	}
	return nil
}

func (m *matcher) tolerates(t *Taint) bool {
	answer, known := m.taints[*t]
	if !known {
		answer = m.tolerated(t)
		m.taints[*t] = answer
	}
	return answer
}

func (m *matcher) tolerated(t *Taint) bool {
	taint := corev1.Taint{Key: t.Key.String(), Value: t.Value.String(), Effect: corev1.TaintEffect(t.Effect.String())}
	return slices.ContainsFunc(m.shape.tolerations, func(toleration corev1.Toleration) bool { return tolerates(&toleration, &taint) })
}
