package meter

import (
	"sync/atomic"
	"time"
)

// Item counts one thing: how often it happened and what it summed up to. Add is two atomic additions.
type Item struct {
	times, sum atomic.Int64
	history    history // the sampler's, under Table.sampling
}

// Add counts times events that sum up to value.
func (i *Item) Add(value, times int64) {
	i.sum.Add(value)
	i.times.Add(times)
}

// Sum and Times are the totals since the start.
func (i *Item) Sum() int64   { return i.sum.Load() }
func (i *Item) Times() int64 { return i.times.Load() }

// Figures are what an item did within a span (RocketMQ BrokerStatsItem).
type Figures struct {
	Sum     int64
	TPS     float64
	Average float64 // sum per event
}

type sample struct {
	at         time.Time
	sum, times int64
}

// history keeps samples in three grains, as RocketMQ's StatsItem: 7 of 10 s, 7 of 10 min, 25 of 1 h.
type history struct{ minute, hour, day []sample }

const (
	minuteSamples = 7
	hourSamples   = 7
	daySamples    = 25
	minuteGrain   = 10 * time.Second
	hourGrain     = 10 * time.Minute
	dayGrain      = time.Hour
)

func (i *Item) take(now time.Time) {
	if len(i.history.minute) == 0 { // it began within the last grain
		zero := sample{at: now.Add(-minuteGrain)}
		i.history = history{minute: []sample{zero}, hour: []sample{zero}, day: []sample{zero}}
	}
	s := sample{at: now, sum: i.sum.Load(), times: i.times.Load()}
	i.history.minute = push(i.history.minute, s, minuteSamples, minuteGrain)
	i.history.hour = push(i.history.hour, s, hourSamples, hourGrain)
	i.history.day = push(i.history.day, s, daySamples, dayGrain)
}

func push(list []sample, s sample, limit int, grain time.Duration) []sample {
	if n := len(list); n > 0 && s.at.Sub(list[n-1].at) < grain {
		return list
	}
	if len(list) == limit {
		copy(list, list[1:])
		list = list[:limit-1]
	}
	return append(list, s)
}

func (i *Item) figures(list []sample, now time.Time) Figures {
	if len(list) == 0 {
		return Figures{}
	}
	first := list[0]
	sum, times := i.sum.Load()-first.sum, i.times.Load()-first.times
	f := Figures{Sum: sum}
	if span := now.Sub(first.at).Seconds(); span > 0 {
		f.TPS = float64(sum) / span
	}
	if times > 0 {
		f.Average = float64(sum) / float64(times)
	}
	return f
}

// rate keeps the last minute of a total in seconds.
type rate struct {
	samples [61]int64
	taken   int
}

func (r *rate) take(total int64) {
	r.samples[r.taken%len(r.samples)] = total
	r.taken++
}

// per returns the events per second over the last span seconds, or over what there is.
func (r *rate) per(span int) float64 {
	if r.taken < 2 {
		return 0
	}
	span = min(span, r.taken-1, len(r.samples)-1)
	last := r.samples[(r.taken-1)%len(r.samples)]
	first := r.samples[(r.taken-1-span)%len(r.samples)]
	return float64(last-first) / float64(span)
}
