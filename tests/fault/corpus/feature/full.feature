# language: en
@auth @web
Feature: Log in
  Words about it.

  Background:
    Given a user

  @slow
  Scenario Outline: with <what>
    When they log in with <what>
      | a | b \| c |
      """
      text
      """
    Then it works

    Examples: some
      | what |
      | mail |

  Rule: always
    Example: twice
      * again
