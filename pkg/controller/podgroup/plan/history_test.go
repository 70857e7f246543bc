// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// histories is how many are tried.
const histories = 2000

// sizing is how the size of the group of a history is known.
type sizing int

const (
	byGroup sizing = iota
	byLabel
	byJob
	byNothing
)

// history is a random life of one group, with rules that always hold.
type history struct {
	dice *rand.Rand
	by   sizing
	// decide is what is tested.
	decide func(Observed) Plan
	size   int32
	now    time.Time
	// pods are the pods of the API by name, and cached are the pods that the controller sees.
	pods, cached map[string]*Pod
	lastNew      time.Time
	incarnations int
	// patched counts patches of each incarnation, and removed says that a user took a label away.
	patched map[types.UID]int
	removed map[types.UID]bool
	broken  []string
}

func newHistory(seed uint64, decide func(Observed) Plan) *history {
	dice := rand.New(rand.NewPCG(seed, 1))
	return &history{
		dice: dice, by: sizing(dice.IntN(4)), decide: decide, size: 1 + dice.Int32N(5), now: now,
		pods: map[string]*Pod{}, cached: map[string]*Pod{}, patched: map[types.UID]int{}, removed: map[types.UID]bool{},
	}
}

func (h *history) breaks(format string, args ...any) {
	h.broken = append(h.broken, fmt.Sprintf(format, args...))
}

// run plays a number of steps, and returns the rules that were broken.
func (h *history) run(steps int) []string {
	for range steps {
		h.now = h.now.Add(time.Duration(h.dice.IntN(1500)) * time.Millisecond)
		h.change()
		if h.dice.IntN(3) > 0 {
			h.sync()
		}
	}
	h.stabilize()
	return h.broken
}

// change is one of the API.
func (h *history) change() {
	name := fmt.Sprintf("p%d", h.dice.IntN(6))
	p := h.pods[name]
	switch what := h.dice.IntN(12); {
	case p == nil && what < 8:
		h.create(name)
	case p == nil:
	case what < 5 && p.Phase == Pending && !p.Terminating:
		p.Phase = Running
	case what == 5 && p.Phase == Running:
		p.Phase = Succeeded
	case what == 6 && p.Phase == Running:
		p.Phase, p.Ended = Failed, h.now.Unix()
	case what == 7:
		p.Terminating = true
	case what == 8 && (p.Terminating || p.Phase == Failed):
		delete(h.pods, name)
		h.create(name) // a replacement
	case what == 9 && p.Terminating:
		delete(h.pods, name)
	case what == 10 && p.Labeled:
		p.Labeled = false
		h.removed[p.UID] = true
	case what == 11 && h.dice.IntN(4) == 0:
		h.size = 1 + h.dice.Int32N(5)
		for _, other := range h.pods {
			h.state(other)
		}
	}
}

func (h *history) create(name string) {
	h.incarnations++
	p := &Pod{Name: name, UID: types.UID(fmt.Sprint(h.incarnations)), Created: h.now.Unix()}
	if h.by == byJob {
		p.Owner = job
	}
	h.state(p)
	h.pods[name] = p
	h.lastNew = h.now
}

func (h *history) state(p *Pod) {
	if h.by == byLabel {
		p.SizeLabel = fmt.Sprint(h.size)
	}
}

// show lets the cache catch up. Our own writes are always shown: the consistency store waits for them.
func (h *history) show() {
	h.cached = map[string]*Pod{}
	for name, p := range h.pods {
		copied := *p
		h.cached[name] = &copied
	}
}

func (h *history) observe() Observed {
	o := Observed{Prefix: Prefixes[0], Now: h.now, LastNew: h.lastNew, ShowStatus: true}
	for _, name := range slices.Sorted(maps.Keys(h.cached)) {
		o.Pods = append(o.Pods, h.cached[name])
	}
	switch h.by {
	case byGroup:
		o.Group = group(h.size)
	case byJob:
		o.Owners = jobOf(h.size)
	}
	return o
}

// sync does what the controller does. The API may change between what it sees and what it writes.
func (h *history) sync() {
	h.show()
	o := h.observe()
	p := h.decide(o)
	h.check(o, p)
	for range h.dice.IntN(3) {
		h.change() // before the patches
	}
	for _, ref := range p.Label {
		h.patched[ref.UID]++
		if current := h.pods[ref.Name]; current != nil && current.UID == ref.UID {
			current.Labeled = true
		}
		if h.patched[ref.UID] > 1 && !h.removed[ref.UID] {
			h.breaks("pod %s was patched %d times", ref.Name, h.patched[ref.UID])
		}
		delete(h.removed, ref.UID)
	}
}

// check compares a plan with the rules, which count for themselves.
func (h *history) check(o Observed, p Plan) {
	run, exist, named := 0, 0, map[string]bool{}
	for _, pod := range o.Pods {
		if pod.Terminating {
			continue
		}
		if pod.Phase == Running || pod.Phase == Succeeded {
			run++
		}
		if pod.Phase != Failed || h.by == byNothing {
			exist++ // a bare pod that has failed is not replaced
		}
	}
	wanted := int(h.size)
	if h.by == byNothing {
		wanted = exist
	}
	for _, ref := range p.Label {
		if named[ref.Name] {
			h.breaks("pod %s is named twice", ref.Name)
		}
		named[ref.Name] = true
	}
	if len(p.Label) > 0 && run < wanted {
		h.breaks("labels %v while %d of %d pods run", p.Label, run, wanted)
	}
	if len(p.Label) > 0 && h.by == byNothing && o.Now.Sub(o.LastNew) < 2*time.Second {
		h.breaks("labels %v before the group is stable", p.Label)
	}
	for _, pod := range o.Pods {
		runs := (pod.Phase == Running || pod.Phase == Succeeded) && !pod.Terminating
		if named[pod.Name] && !runs {
			h.breaks("labels pod %s, which does not run", pod.Name)
		}
		if p.Ready && runs && !pod.Labeled && !named[pod.Name] {
			h.breaks("pod %s of a ready group runs without the label", pod.Name)
		}
	}
}

// stabilize lets all pods run, and looks until nothing is left to do: then the group is ready if there are enough.
func (h *history) stabilize() {
	for _, p := range h.pods {
		if p.Phase == Pending {
			p.Phase = Running
		}
	}
	for range 3 {
		h.now = h.now.Add(5 * time.Second)
		h.show()
		o := h.observe()
		p := h.decide(o)
		h.check(o, p)
		for _, ref := range p.Label {
			h.pods[ref.Name].Labeled = true
		}
	}
	h.show()
	run, lost, unlabeled := 0, 0, 0
	for _, p := range h.pods {
		switch {
		case p.Terminating:
		case p.Phase == Failed:
			lost++
		default:
			run++
			if !p.Labeled {
				unlabeled++
			}
		}
	}
	enough := run >= int(h.size)
	if h.by == byNothing {
		enough = lost == 0
	}
	if h.by == byLabel && run+lost == 0 {
		return
	}
	if enough && run > 0 && unlabeled > 0 {
		h.breaks("at the end %d of %d pods lack the label", unlabeled, run)
	}
}

// play returns the first rule that a decision breaks.
func play(decide func(Observed) Plan) string {
	for seed := range uint64(histories) {
		if broken := newHistory(seed, decide).run(60); len(broken) > 0 {
			return fmt.Sprintf("history %d: %s", seed, broken[0])
		}
	}
	return ""
}

func TestHistories(t *testing.T) {
	if broken := play(Decide); broken != "" {
		t.Error(broken)
	}
}
