// Copyright The jobset-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package allreduce is a training run without the training: workers add up vectors in a ring over TCP, step by step,
// and save what they have to a volume. It goes on from there when it is restarted, and its result is known beforehand,
// so that a step that is lost or counted twice shows.
package allreduce

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Config is what a worker knows of the run.
type Config struct {
	// Name and Subdomain are the names of the Jobs without their index, and of the Service: a pod is NAME-JOB-POD.SUBDOMAIN.
	Name, Subdomain string
	// Jobs is the number of Jobs, Pods that of the workers of each. Job and Pod are the indices of this worker.
	Jobs, Pods, Job, Pod int
	// Attempt is the number of restarts before this attempt.
	Attempt int
	// Dir is the directory of the volume.
	Dir string
	// Steps is how many steps the run has, Elements the length of the vectors, and Every the number of steps from one checkpoint to the next.
	Steps, Elements, Every int
	// StepTime is how long a step waits, in place of work.
	StepTime time.Duration
	// RestartTimeout is how long a worker that has lost a neighbor waits to be restarted before it fails.
	RestartTimeout time.Duration
	// Port is where workers listen.
	Port int
	// addresses are the addresses of workers without names.
	addresses []string
}

// Parse reads the flags, and the indices from the environment: JOB_INDEX, JOB_COMPLETION_INDEX and RESTART_ATTEMPT.
func Parse(args []string) (Config, error) {
	var c Config
	flags := flag.NewFlagSet("allreduce", flag.ContinueOnError)
	flags.StringVar(&c.Name, "name", "", "names of the Jobs without their index")
	flags.StringVar(&c.Subdomain, "subdomain", "", "name of the Service")
	flags.IntVar(&c.Jobs, "jobs", 1, "number of Jobs")
	flags.IntVar(&c.Pods, "pods", 1, "number of workers of each Job")
	flags.StringVar(&c.Dir, "checkpoints", "", "directory for checkpoints and the result")
	flags.IntVar(&c.Steps, "steps", 100, "number of steps")
	flags.IntVar(&c.Elements, "elements", 64, "length of the vectors")
	flags.IntVar(&c.Every, "checkpoint-every", 10, "steps from one checkpoint to the next")
	flags.DurationVar(&c.StepTime, "step-time", 0, "how long each step waits")
	flags.DurationVar(&c.RestartTimeout, "restart-timeout", time.Minute, "how long a worker that has lost a neighbor waits to be restarted")
	flags.IntVar(&c.Port, "port", 7001, "port of the workers")
	if err := flags.Parse(args); err != nil {
		return c, err
	}
	for variable, to := range map[string]*int{"JOB_INDEX": &c.Job, "JOB_COMPLETION_INDEX": &c.Pod, "RESTART_ATTEMPT": &c.Attempt} {
		var err error
		if *to, err = strconv.Atoi(os.Getenv(variable)); err != nil {
			return c, fmt.Errorf("%s: %w", variable, err)
		}
	}
	return c, c.validate()
}

func (c Config) validate() error {
	if c.Name == "" || c.Subdomain == "" || c.Dir == "" {
		return errors.New("--name, --subdomain and --checkpoints must be set")
	}
	if min(c.Jobs, c.Pods, c.Steps, c.Elements, c.Every) < 1 || c.Workers() < 2 {
		return errors.New("there must be two workers or more, and one or more of steps, elements and --checkpoint-every")
	}
	if c.Job < 0 || c.Job >= c.Jobs || c.Pod < 0 || c.Pod >= c.Pods {
		return fmt.Errorf("there is no worker %d in Job %d", c.Pod, c.Job)
	}
	return nil
}

// Workers is how many there are, and Rank the number of this one, from 0.
func (c Config) Workers() int  { return c.Jobs * c.Pods }
func (c Config) Rank() int     { return c.Job*c.Pods + c.Pod }
func (c Config) next() int     { return (c.Rank() + 1) % c.Workers() }
func (c Config) previous() int { return (c.Rank() + c.Workers() - 1) % c.Workers() }

// address is the address of a worker.
func (c Config) address(rank int) string {
	if c.addresses != nil {
		return c.addresses[rank]
	}
	return fmt.Sprintf("%s-%d-%d.%s:%d", c.Name, rank/c.Pods, rank%c.Pods, c.Subdomain, c.Port)
}

// listen is where this worker takes the connection of the previous one.
func (c Config) listen() string {
	if c.addresses != nil {
		return c.addresses[c.Rank()]
	}
	return fmt.Sprintf(":%d", c.Port)
}

// hello is what a worker says to the next one.
func (c Config) hello(rank int) string { return fmt.Sprintf("attempt %d rank %d\n", c.Attempt, rank) }

// Run does the work of one worker.
func Run(ctx context.Context, c Config) error {
	r, err := join(ctx, c)
	if err != nil {
		return err
	}
	defer r.close()
	stop := context.AfterFunc(ctx, r.close)
	defer stop()
	err = c.train(ctx, r)
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil: // the connections were closed for that
		return ctx.Err()
	}
	// The neighbor has ended, which says why it did; if this worker failed as well, the first cause would be the faster one.
	fmt.Printf("the ring is broken: %v\n", err)
	select {
	case <-ctx.Done():
	case <-time.After(c.RestartTimeout):
	}
	return err
}

func (c Config) train(ctx context.Context, r *ring) error {
	s, err := c.resume(r)
	if err != nil {
		return err
	}
	fmt.Printf("worker %d of %d begins attempt %d at step %d\n", c.Rank(), c.Workers(), c.Attempt, s.Step)
	for s.Step < c.Steps {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(c.StepTime):
		}
		values := make([]uint64, c.Elements)
		for i := range values {
			values[i] = Contribution(c.Rank(), s.Step, i)
		}
		if err := r.sum(values); err != nil {
			return err
		}
		for i := range values {
			s.Elements[i] += values[i]
		}
		if s.Step++; s.Step%c.Every == 0 {
			if err := c.save(r, s, checkpointFile); err != nil {
				return err
			}
		}
	}
	if err := c.save(r, s, resultFile); err != nil {
		return err
	}
	fmt.Printf("worker %d ends at step %d with the sum %x\n", c.Rank(), s.Step, s.Elements[0])
	return nil
}

// resume has all workers begin where rank 0 finds the last checkpoint.
func (c Config) resume(r *ring) (State, error) {
	s := State{Elements: make([]uint64, c.Elements)}
	if c.Rank() == 0 {
		var err error
		if s, err = Checkpoint(c.Dir, c.Elements); err != nil {
			return s, err
		}
	}
	shared := append([]uint64{uint64(s.Step)}, s.Elements...)
	err := r.broadcast(shared)
	return State{Step: int(shared[0]), Elements: shared[1:]}, err
}

// save has rank 0 save the state, and the others wait for it, so that none of them ends before the result is there.
func (c Config) save(r *ring, s State, file string) error {
	if c.Rank() == 0 {
		if err := s.save(filepath.Join(c.Dir, file)); err != nil {
			return err
		}
	}
	return r.broadcast([]uint64{uint64(s.Step)})
}
